"""How often each fault was tried and what was lost: counted by the tests, printed at the end."""

from dataclasses import dataclass, field


@dataclass
class Tally:
    """Rows of the table in docs/evidence/trust.md, as this run has earned them."""

    rows: dict[str, int] = field(default_factory=dict)

    def count(self, fault: str, tries: int) -> None:
        """``tries`` tries of a fault were survived with nothing lost, or this is not reached."""
        self.rows[fault] = self.rows.get(fault, 0) + tries

    def lines(self) -> list[str]:
        """For people: the faults with their numbers."""
        return [f"{tries:6d} × {fault}: 0 lost" for fault, tries in self.rows.items()]


TALLY = Tally()
"""Of this run: the summary is written where no fixture reaches."""
