"""The web process. It refuses to start when live and sandbox are mixed (design section 7)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "waistheart.settings")
django_application = get_wsgi_application()

from waistheart import logs  # noqa: E402  (apps must be loaded first)
from waistheart.live import refuse_to_start_inconsistent  # noqa: E402
from waistheart.middleware import readable_types  # noqa: E402

logs.mask_gunicorn()
application = readable_types(django_application)

refuse_to_start_inconsistent()
