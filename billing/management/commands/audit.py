"""manage.py audit: recompute every balance from the ledger."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.audit import differences


class Command(BaseCommand):
    help = "Recomputes every balance from the ledger's entries; fails when one differs."

    def handle(self, *args: Any, **options: Any) -> None:
        found = differences()
        for difference in found:
            self.stderr.write(f"DIFFERENCE {difference}")
        if found:
            raise CommandError(f"{len(found)} differences")
        self.stdout.write("audit: balances equal the sums of entries, 0 differences")
