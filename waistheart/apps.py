from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class WaistheartConfig(AppConfig):
    name = "waistheart"
    verbose_name = "Installation"

    def ready(self) -> None:
        """Load the system checks, which register themselves; they read models, so they wait until those are loaded."""
        autodiscover_modules("checks")
