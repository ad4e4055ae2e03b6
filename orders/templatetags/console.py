"""The console's first page."""

from django import template

from orders import console

register = template.Library()


@register.simple_tag
def needs_a_person() -> list[console.Tile]:
    """The figures at the top of the console."""
    return console.today()
