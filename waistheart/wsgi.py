"""The web process. It refuses to start when live and sandbox are mixed (design section 7)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "waistheart.settings")
application = get_wsgi_application()

from waistheart.live import refuse_to_start_inconsistent  # noqa: E402  (apps must be loaded first)

refuse_to_start_inconsistent()
