"""The options that commands share which meet a service: session, address and key."""

from pathlib import Path
from typing import Annotated

import typer

HERE = "http://127.0.0.1:8000"
"""Address of a service on this machine, where no other is named."""

SessionId = Annotated[str, typer.Option(help="Id of the session, `ses_…`.")]
Url = Annotated[str, typer.Option(envvar="CELEUS_URL", help="Address of the service.")]
ReadKeyFile = Annotated[
    Path | None,
    typer.Option(help="File with a key of scope `read`; default: the key in CELEUS_KEY."),
]
LabelKeyFile = Annotated[
    Path | None,
    typer.Option(help="File with a key of scope `label`; default: the key in CELEUS_KEY."),
]
ManageKeyFile = Annotated[
    Path | None,
    typer.Option(help="File with a key of scope `manage`; default: the key in CELEUS_KEY."),
]
