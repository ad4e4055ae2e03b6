"""Every setting of the shop, read strictly from the environment. `.env.example` names each with one line.

Ages are seconds. What belongs together is checked in `waistheart/checks.py`; whether both sides are real or both are
sandbox is decided in `waistheart/live.py`.
"""

from pathlib import Path
from urllib.parse import urlsplit

from waistheart import logs
from waistheart.demo_secret import demo_secret
from waistheart.env import BASE_DIR, env, strict_bool

# --- the shop itself -------------------------------------------------------------------------------------------------
LIVE = strict_bool("LIVE")
DEBUG = strict_bool("DEBUG")
VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
if not LIVE:
    VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)  # photos, videos, mails and secrets: for nobody else to read
SECRET_KEY = env.str("SECRET_KEY", default="") or ("" if LIVE else demo_secret(VAR_DIR, "secret_key"))
PUBLIC_URL = env.str("PUBLIC_URL", default="http://127.0.0.1:8000").rstrip("/")
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=[urlsplit(PUBLIC_URL).hostname or "127.0.0.1", "127.0.0.1", "localhost"]
)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
SANDBOX_HOSTS = env.list("SANDBOX_HOSTS", default=[])
HELP_EMAIL = env.str("HELP_EMAIL", default="help@waistheart.example")
SELLER = env.str("SELLER", default="WaistHeart (demo seller), 1 Heart Lane, Exampletown")
TAX_TEXT = env.str("TAX_TEXT", default="tax included")


def outside(real: str, sandbox: str) -> str:
    """What is not set leads to the sandbox unless the shop is live: no command reaches the world by an omission."""
    return real if LIVE else f"http://127.0.0.1:8001{sandbox}"


# --- people and money ------------------------------------------------------------------------------------------------
CURRENCY = env.str("CURRENCY", default="GBP").upper()
GRANT_SECONDS = env.int("GRANT_SECONDS", default=365 * 86400)
RETURNED_GRANT_SECONDS = env.int("RETURNED_GRANT_SECONDS", default=30 * 86400)
STRIPE_SECRET_KEY = env.str("STRIPE_SECRET_KEY", default="")
STRIPE_WEBHOOK_SECRET = env.str("STRIPE_WEBHOOK_SECRET", default="")
STRIPE_API_BASE = env.str("STRIPE_API_BASE", default=outside("https://api.stripe.com", "/stripe")).rstrip("/")

# --- the video provider ----------------------------------------------------------------------------------------------
VIDEO_PROVIDER = env.str("VIDEO_PROVIDER", default="fal")
VIDEO_MODEL = env.str("VIDEO_MODEL", default="fal-ai/heart-pose/image-to-video")
FAL_KEY = env.str("FAL_KEY", default="")
FAL_QUEUE_URL = env.str("FAL_QUEUE_URL", default=outside("https://queue.fal.run", "/fal/queue")).rstrip("/")
FAL_API_URL = env.str("FAL_API_URL", default=outside("https://api.fal.ai/v1", "/fal/api/v1")).rstrip("/")
FAL_JWKS_URL = env.str("FAL_JWKS_URL", default=outside("https://rest.fal.ai", "/fal") + "/.well-known/jwks.json")
FAL_MEDIA_HOSTS = env.list("FAL_MEDIA_HOSTS", default=["v3.fal.media", "v3b.fal.media"] if LIVE else ["127.0.0.1:8001"])
PROVIDER_MAX_IN_FLIGHT = env.int("PROVIDER_MAX_IN_FLIGHT", default=2)

# --- ages and limits -------------------------------------------------------------------------------------------------
LEASE_SECONDS = env.int("LEASE_SECONDS", default=120)
SUBMIT_DEADLINE_SECONDS = env.int("SUBMIT_DEADLINE_SECONDS", default=60)
LONGEST_RUN_SECONDS = env.int("LONGEST_RUN_SECONDS", default=1800)
SWEEP_SECONDS = env.int("SWEEP_SECONDS", default=60)
DRAFT_SECONDS = env.int("DRAFT_SECONDS", default=86400)
IMAGE_URL_SECONDS = env.int("IMAGE_URL_SECONDS", default=14400)
ORPHAN_WINDOW_SECONDS = env.int("ORPHAN_WINDOW_SECONDS", default=14 * 86400)
SANDBOX_DELAY_SECONDS = env.float("SANDBOX_DELAY_SECONDS", default=3.0)
OUT_OF_CREDITS_RETRY_SECONDS = env.int("OUT_OF_CREDITS_RETRY_SECONDS", default=900)
QUEUE_DEADLINE_SECONDS = env.int("QUEUE_DEADLINE_SECONDS", default=86400)
PROCESSING_DEADLINE_SECONDS = env.int("PROCESSING_DEADLINE_SECONDS", default=7200)
STORING_DEADLINE_SECONDS = env.int("STORING_DEADLINE_SECONDS", default=86400)
UNKNOWN_SUBMIT_REVIEW_SECONDS = env.int("UNKNOWN_SUBMIT_REVIEW_SECONDS", default=3600)
REVIEW_GIVE_BACK_SECONDS = env.int("REVIEW_GIVE_BACK_SECONDS", default=259200)
PHOTO_KEPT_SECONDS = env.int("PHOTO_KEPT_SECONDS", default=86400)
VIDEO_KEPT_SECONDS = env.int("VIDEO_KEPT_SECONDS", default=30 * 86400)
MAX_VIDEO_BYTES = env.int("MAX_VIDEO_BYTES", default=64 * 1024 * 1024)
MAX_PHOTO_BYTES = env.int("MAX_PHOTO_BYTES", default=15 * 1024 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# --- Django ----------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "waistheart",
    "billing",
    "generation",
    "orders",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "waistheart.middleware.SayNoProperly",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "waistheart.middleware.WholeForms",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "waistheart.urls"
WSGI_APPLICATION = "waistheart.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "orders.frame.frame",
            ]
        },
    }
]
AUTH_USER_MODEL = "waistheart.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}}
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if strict_bool("BEHIND_PROXY") else None
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        **{name: ["'none'"] for name in ("default-src", "base-uri", "frame-ancestors")},
        **{name: ["'self'"] for name in ("script-src", "style-src", "connect-src", "font-src")},
        "img-src": ["'self'", "blob:", "data:"],
        "media-src": ["'self'", "blob:"],
        # The pay form posts to us and is redirected to the card processor's page, which browsers count as a form target.
        "form-action": ["'self'", "https://checkout.stripe.com", STRIPE_API_BASE],
    }
}

# --- database --------------------------------------------------------------------------------------------------------
DATABASES = {"default": env.db_url("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'waistheart.db'}")}
DATABASES["default"]["ATOMIC_REQUESTS"] = False
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        # A transaction that begins by reading cannot be upgraded while another writes; beginning immediately waits instead.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", default=60)
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

# --- storage ---------------------------------------------------------------------------------------------------------
S3_ENDPOINT_URL = env.str("S3_ENDPOINT_URL", default="")
S3_BUCKET = env.str("S3_BUCKET", default="")
S3_ACCESS_KEY_ID = env.str("S3_ACCESS_KEY_ID", default="")
S3_SECRET_ACCESS_KEY = env.str("S3_SECRET_ACCESS_KEY", default="")
S3_REGION = env.str("S3_REGION", default="auto")
FILES_STORAGE = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {"location": str(VAR_DIR / "media")},
}
S3_STORAGE = {
    "BACKEND": "storages.backends.s3.S3Storage",
    "OPTIONS": {
        "bucket_name": S3_BUCKET,
        "endpoint_url": S3_ENDPOINT_URL or None,
        "access_key": S3_ACCESS_KEY_ID,
        "secret_key": S3_SECRET_ACCESS_KEY,
        "region_name": S3_REGION,
        "querystring_auth": True,
        "file_overwrite": False,
    },
}
STORAGES = {
    "default": S3_STORAGE if S3_BUCKET else FILES_STORAGE,
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
WHITENOISE_MAX_AGE = 3600

# --- mail ------------------------------------------------------------------------------------------------------------
EMAIL_URL = env.str("EMAIL_URL", default="")
if EMAIL_URL:
    vars().update(env.email_url("EMAIL_URL"))
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = VAR_DIR / "mail"
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="WaistHeart <videos@waistheart.example>")

# --- Celery: the rows are the queue, messages carry an id and may all be lost ----------------------------------------
BROKER_URL = env.str("BROKER_URL", default="filesystem://localhost")
CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "waistheart"
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
if BROKER_URL.startswith("filesystem:"):
    for folder in ("broker", "broker-control"):
        (VAR_DIR / folder).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(VAR_DIR / "broker"),
        "data_folder_out": str(VAR_DIR / "broker"),
        "control_folder": str(VAR_DIR / "broker-control"),
        "polling_interval": 0.1,
    }
else:
    # A web request must not hang on a broker that is away: the sweep finds the row within a minute.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "socket_timeout": 5, "visibility_timeout": 3600}
# What waited longer in the queue than until the next one is worth nothing: a worker that was away is not buried in old ones.
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "orders.sweep", "schedule": float(SWEEP_SECONDS), "options": {"expires": 55}},
    "find_paid": {"task": "orders.find_paid", "schedule": float(SWEEP_SECONDS), "options": {"expires": 55}},
    "probe": {
        "task": "generation.probe",
        "schedule": float(OUT_OF_CREDITS_RETRY_SECONDS),
        "options": {"expires": 600},
    },
    "daily": {"task": "orders.daily", "schedule": float(SWEEP_SECONDS), "options": {"expires": 55}},
}

LOGGING = logs.configuration(level=env.str("LOG_LEVEL", default="INFO"))
