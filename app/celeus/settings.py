"""Settings of the process, read once from the environment and never changed."""

from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_MEBIBYTE = 1024 * 1024
LogFormat = Literal["auto", "json", "text"]


class Settings(BaseSettings):
    """The operator's settings; each is read from `CELEUS_` and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="CELEUS_", frozen=True, extra="forbid")

    database_url: str | None = Field(
        default=None, description="PostgreSQL; without it a private one runs in `data_dir`."
    )
    redis_url: str | None = Field(
        default=None, description="Redis; without it status and streams read PostgreSQL."
    )
    data_dir: Path = Field(
        default=Path("celeus-data"),
        description="Folder of the private PostgreSQL and of the signing key that a start makes.",
    )
    signing_key_file: Path | None = Field(
        default=None,
        description="Ed25519 key in PEM that signs certificates; without it the one in `data_dir`.",
    )
    timestamp_url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="A timestamping service (RFC 3161) that is asked to stamp every opening.",
    )
    certificate_limit_bytes: int = Field(
        default=512 * _MEBIBYTE, ge=1, description="Largest certificate that is verified."
    )
    verification_seconds: float = Field(
        default=60.0, gt=0, description="How long the verification of a certificate may take."
    )
    background_processes: int = Field(
        default=4,
        ge=1,
        description="Processes at low priority a worker may have at once, for plans, claims,"
        " verifications, pushed runs and files; half of them for one key.",
    )
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int = Field(default=1, ge=1)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: LogFormat = Field(
        default="auto", description="Lines of `text` or of `json`; `auto`: text on a terminal."
    )
    slow_request_seconds: float = Field(
        default=1.0,
        ge=0,
        description="From when on a request is logged as slow, with where the time went; 0: never.",
    )

    upload_limit_bytes: int = Field(
        default=512 * _MEBIBYTE, ge=1, description="Largest upload of items, also unpacked."
    )
    json_limit_bytes: int = Field(
        default=_MEBIBYTE, ge=1, description="Largest body of JSON, but for pools with items."
    )
    body_timeout_seconds: float = Field(
        default=60.0, gt=0, description="How long a body may stand still while it is sent."
    )
    client_timeout_seconds: float = Field(
        default=20.0,
        gt=0,
        description="How long a client may take for a head, or leave an answer unread.",
    )
    trusted_proxies: str | None = Field(
        default=None,
        description="Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are"
        " believed, separated by spaces.",
    )
    max_items: int = Field(default=10_000_000, ge=1, description="Items of one pool.")
    requests_per_minute: int = Field(default=60_000, ge=0, description="Of one key; 0: no limit.")
    failed_keys_per_minute: int = Field(
        default=600, ge=0, description="Requests with a wrong key, by address; 0: no limit."
    )
    key_cache_seconds: float = Field(
        default=5.0, ge=0, le=3600, description="How long a revoked key may still come in."
    )
    browser_hours: float = Field(
        default=720.0, gt=0, le=8760, description="How long a browser stays signed in at most."
    )
    browser_idle_hours: float = Field(
        default=168.0, gt=0, le=8760, description="How long it stays so without being used."
    )
    public_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#\s]+/?$",
        description="Where people reach the service, for links; else its own host and port.",
    )
    cors_origins: str | None = Field(
        default=None,
        description="Origins whose pages may use the interface with a key, separated by spaces.",
    )
    media_hosts: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9.\- ]*$",
        description="Hosts whose pictures and sounds in payloads load without a click, separated by"
        " spaces.",
    )
    webhook_internal: str | None = Field(
        default=None,
        description="Hosts and networks inside that webhooks may lead to, separated by spaces;"
        " else public addresses only.",
    )
    webhook_http: bool = Field(
        default=False, description="Whether webhooks may lead to `http://`, unencrypted."
    )
    webhook_stalled_hours: float = Field(
        default=24.0,
        gt=0,
        le=8760,
        description="How long an active session has had no label when it is told to be stalled.",
    )
    max_draws_per_worker: int = Field(
        default=256, ge=1, description="Draws of one session a worker may hold."
    )
    max_draws_out: int = Field(
        default=256, ge=1, description="Draws of one session that may wait for their loss."
    )
    max_share_per_key: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of a session's draws that a blind key may hold.",
    )
    lease_seconds_default: int = Field(default=300, ge=1)
    hot_sessions: int = Field(default=256, ge=1, description="Session states a worker keeps.")
    hot_bytes: int = Field(
        default=1024 * _MEBIBYTE,
        ge=1,
        description="Bytes of the session states a worker keeps, but for the one used last.",
    )
    hot_pools: int = Field(default=16, ge=1, description="Pools a worker keeps.")

    database_pool_size: int = Field(default=16, ge=1, description="Connections per worker.")
    database_pooler: bool = Field(
        default=False,
        description="Whether `database_url` leads to PgBouncer or another pooler of transactions.",
    )
    queue_limit: int = Field(
        default=512,
        ge=1,
        description="Requests that may wait for a connection in a worker, of all projects by turns;"
        " beyond them 503.",
    )
    lock_timeout_ms: int = Field(default=5_000, ge=1)
    statement_timeout_ms: int = Field(default=60_000, ge=1)
    status_ttl_seconds: int = Field(default=10, ge=1)

    @property
    def proxies(self) -> list[str]:
        """Trusted proxies, as a list."""
        return (self.trusted_proxies or "").split()

    @property
    def address(self) -> str:
        """Address of the service for people: the public URL, else one on this machine."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        # A server that listens on all addresses is reached on the loopback address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, proxies: str | None) -> str | None:
        for proxy in (proxies or "").split():
            ip_network(proxy)
        return proxies
