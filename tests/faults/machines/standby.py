"""Two PostgreSQL, one the synchronous standby of the other, and who sees to it that one serves.

What Patroni does, by hand and in one process: it needs a store with a majority (etcd, Consul) to
decide on two machines alone which of them is the primary. Here nobody disagrees, and what the tests
show holds whoever promotes: that PostgreSQL has on both what it said was committed, and that the
service acknowledges nothing else and finds the new primary by itself.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from celeus.store.embedded.account import account
from celeus.store.embedded.server import programs_folder
from celeus.subprocesses import ChildProcess
from tests.faults.machines.network import Machine
from tests.servers import put_cluster

LOOK_SECONDS = 0.5
MISSES = 3
"""So often the primary does not answer before the standby takes its place."""
PATIENCE_SECONDS = 60.0
OPTIONS = """
listen_addresses = '*'
unix_socket_directories = ''
max_connections = 100
wal_keep_size = '1GB'
wal_receiver_timeout = '3s'
wal_sender_timeout = '3s'
wal_retrieve_retry_interval = '500ms'
"""


@dataclass
class Node:
    """A PostgreSQL of its own on a machine."""

    machine: Machine
    folder: Path
    process: ChildProcess | None = None

    @property
    def cluster(self) -> Path:
        """Its data."""
        return self.folder / "postgres"

    @property
    def log(self) -> Path:
        """What its programs say."""
        return self.folder / "log"

    @property
    def source(self) -> str:
        """Where the other one finds it."""
        return f"host={self.machine.address} port={self.machine.port} user=postgres"

    def make(self) -> None:
        """Give it a migrated database, to which everybody on the network is let in."""
        put_cluster(self.folder)
        with (self.cluster / "pg_hba.conf").open("a") as access:
            access.write("host all,replication all samenet trust\n")
        with (self.cluster / "postgresql.conf").open("a") as settings:
            settings.write(OPTIONS)

    def follow(self, primary: "Node") -> None:
        """Give it a copy of another one, to be its standby."""
        self.folder.mkdir(mode=0o711)
        self.folder.chmod(0o711)
        self.cluster.mkdir(mode=0o700)
        account().give(self.cluster)
        copy = ["-d", primary.source, "-D", str(self.cluster), "-R", "-c", "fast"]
        self.machine.run([_program("pg_basebackup"), *copy], self.folder, self.log)

    def rewind(self, primary: "Node") -> None:
        """Make a former primary a standby: what it alone had committed is undone."""
        # Whoever was without a network does not find everybody at once when it is back
        self._look_for(primary)
        source = f"{primary.source} dbname=postgres"
        back = ["--source-server", source, "-D", str(self.cluster), "-R"]
        self.machine.run([_program("pg_rewind"), *back], self.folder, self.log)

    def _look_for(self, other: "Node") -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        look = [_program("pg_isready"), "-d", other.source]
        while True:
            process = self.machine.launch(look, self.folder, self.log)
            missing = process.wait(PATIENCE_SECONDS)
            process.release()
            if not missing:
                return
            assert time.monotonic() < deadline, "no network"
            time.sleep(0.2)

    def start(self) -> None:
        """Run it; nobody has waited until it answers."""
        place = ["-D", str(self.cluster), "-p", str(self.machine.port)]
        self.process = self.machine.launch([_program("postgres"), *place], self.cluster, self.log)

    async def stop(self) -> None:
        """End it in an orderly way, if it runs."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, 2)
            await asyncio.to_thread(self.process.wait, PATIENCE_SECONDS)
            self.gone()

    def gone(self) -> None:
        """It has ended."""
        if self.process is not None:
            self.process.wait(PATIENCE_SECONDS)
            self.process.release()
            self.process = None

    async def told(self, query: str) -> str:
        """The one value of a query, as text; empty where there is none."""
        connecting = psycopg.AsyncConnection.connect(
            f"{self.source} dbname=postgres connect_timeout=2", autocommit=True
        )
        async with asyncio.timeout(3), await connecting as db:
            cursor = await db.execute(query.encode())
            row = await cursor.fetchone() if cursor.description else None
        return "" if row is None else str(row[0])

    async def until(self, query: str, answer: str) -> None:
        """Wait until a query has this answer."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.process is not None:
                assert self.process.poll() is None, self.log.read_text(errors="replace")[-2000:]
                with suppress(psycopg.OperationalError, TimeoutError):
                    if await self.told(query) == answer:
                        return
                await asyncio.sleep(0.1)


class Pair:
    """Two of them. ``primary`` is None while nobody may be asked."""

    def __init__(self, machines: list[Machine], folder: Path) -> None:
        self.nodes = [
            Node(machine, folder / f"node-{place}") for place, machine in enumerate(machines)
        ]
        self.primary: Node | None = self.nodes[0]
        self.promotions = 0

    def other(self, node: Node) -> Node:
        """The other one."""
        (other,) = (one for one in self.nodes if one is not node)
        return other

    async def make(self) -> None:
        """Start both."""
        first, second = self.nodes
        await asyncio.to_thread(first.make)
        first.start()
        await first.until("SELECT 1", "1")
        await asyncio.to_thread(second.follow, first)
        second.start()
        await self.synchronise()

    async def synchronise(self) -> None:
        """From now on nothing is committed that the standby has not written to its disk."""
        assert self.primary is not None
        await self.primary.until("SELECT count(*) FROM pg_stat_replication", "1")
        await self.primary.told("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await self.primary.told("SELECT pg_reload_conf()")
        await self.primary.until("SELECT sync_state FROM pg_stat_replication", "sync")

    async def supervise(self) -> None:
        """Look after the primary for ever, and promote the standby when it is lost."""
        misses = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            primary = self.primary
            assert primary is not None
            try:
                await primary.told("SELECT 1")
            except (psycopg.OperationalError, TimeoutError):
                misses += 1
            else:
                misses = 0
            if misses == MISSES:
                misses = 0
                await self.promote(self.other(primary))

    async def promote(self, standby: Node) -> None:
        """Let a standby be the primary."""
        self.primary = None
        # It has no standby of its own yet, and would wait for one
        await standby.told("ALTER SYSTEM RESET synchronous_standby_names")
        await standby.told("SELECT pg_reload_conf()")
        assert await standby.told("SELECT pg_promote()") == "True"
        self.promotions += 1
        self.primary = standby

    async def repair(self) -> None:
        """Make the one that was lost the standby of the other, whatever it did meanwhile."""
        assert self.primary is not None
        lost = self.other(self.primary)
        # Before it can be reached again: no two primaries are ever on one network
        lost.machine.power_off()
        lost.machine.join()
        await asyncio.to_thread(lost.gone)
        await self.primary.told("CHECKPOINT")
        await asyncio.to_thread(lost.rewind, self.primary)
        lost.start()
        await self.synchronise()

    async def tell(self, node: Node) -> asyncio.Server:
        """Say on a port of its own whether this one is the primary, to whoever asks over HTTP."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                words = "200 OK" if node is self.primary else "503 Service Unavailable"
                writer.write(f"HTTP/1.0 {words}\r\n\r\n".encode())
                await writer.drain()
            writer.close()

        return await asyncio.start_server(answer, "127.0.0.1", 0)


@asynccontextmanager
async def running_pair(machines: list[Machine], folder: Path) -> AsyncIterator[Pair]:
    """A primary with its synchronous standby, which nobody looks after yet."""
    pair = Pair(machines, folder)
    try:
        await pair.make()
        yield pair
    finally:
        for node in pair.nodes:
            await node.stop()


@asynccontextmanager
async def supervised(pair: Pair) -> AsyncIterator[list[int]]:
    """Have the standby take the place of a primary that is lost; gives the ports that tell who is.

    What goes wrong in the supervisor goes wrong in the block.
    """
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(await pair.tell(node)) for node in pair.nodes]
        group = await stack.enter_async_context(asyncio.TaskGroup())
        watch = group.create_task(pair.supervise())
        try:
            yield [server.sockets[0].getsockname()[1] for server in servers]
        finally:
            watch.cancel()


def by_itself(*nodes: Node) -> str:
    """Where the service finds the primary among these, by itself."""
    hosts = ",".join(node.machine.address for node in nodes)
    ports = ",".join(str(node.machine.port) for node in nodes)
    where = f"host={hosts}&port={ports}&target_session_attrs=read-write"
    return f"postgresql://postgres@/celeus?{where}"


def _program(name: str) -> str:
    return str(programs_folder() / name)
