from django.apps import AppConfig


class WaistheartConfig(AppConfig):
    name = "waistheart"
    verbose_name = "Installation"
