"""A real SLURM of one node in a folder of its own: munged, slurmctld and slurmd, without database and cgroups.

Four CPUs are claimed, however many there are, and one GPU, which is /dev/null.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
PACKAGES = "slurmctld slurmd slurm-client munge"
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

CONF = """
ClusterName=toy
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams=OverMemoryKill
JobAcctGatherFrequency=task=1
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
MinJobAge=7200
KillWait=5
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory={memory} Gres=gpu:h200:1 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=02:00:00 DefMemPerCPU=256 State=UP
PartitionName=gpu Nodes={host} MaxTime=02:00:00 DefMemPerCPU=256 State=UP
"""


def missing() -> list[str]:
    """Return the programs of SLURM and munge that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=SEARCH) is None]


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@dataclass(frozen=True)
class Job:
    """One SLURM job as the controller remembers it."""

    number: int
    state: str
    comment: str
    partition: str
    gpu: str
    memory_mb: int
    submitted: datetime
    begun: datetime | None
    ended: datetime | None

    @property
    def rule(self) -> str:
        """Return the rule that it ran."""
        return self.comment.removeprefix("rule_").partition("_wildcards_")[0]

    @property
    def seconds(self) -> float:
        """Return how long it had its CPUs."""
        return (self.ended - self.begun).total_seconds() if self.begun and self.ended else 0.0


def _time(text: str) -> datetime | None:
    return None if text in ("Unknown", "None", "N/A") else datetime.fromisoformat(text)


def _megabytes(text: str) -> int:
    number, unit = re.fullmatch(r"([0-9.]+)([KMGT]?)", text).groups()  # type: ignore[union-attr]
    return round(float(number) * {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[unit])


class ToySlurm:
    """The three daemons; a context manager. ``environment`` lets clients find them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # a socket's path must be short
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Return what clients need; ``shims`` belongs before all else on PATH."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    @property
    def shims(self) -> Path:
        """Return a folder with an srun that knows the configuration: jobs lose SLURM_CONF on their way."""
        return self.folder / "bin"

    def __enter__(self) -> ToySlurm:
        self.folder.chmod(0o755)
        for name in ("munge", "state", "spool", "log", "bin"):
            (self.folder / name).mkdir(mode=0o755)
        self._write()
        munge = self.folder / "munge"
        self._start(
            *("munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket"),
            *(f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"),
        )
        self._wait_for("munge", munge.joinpath("socket").exists)
        self._start("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._start("slurmd", "-D", "-f", str(self.folder / "slurm.conf"))
        self._wait_for("an idle node", lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self) -> None:
        host = socket.gethostname().partition(".")[0]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 512
        conf = CONF.format(host=host, folder=self.folder, ports=free_ports(2), memory=memory)
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "gres.conf").write_text(f"NodeName={host} Name=gpu Type=h200 File=/dev/null\n")
        key = self.folder / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        srun = self.shims / "srun"
        conf_file, real = self.folder / "slurm.conf", shutil.which("srun", path=SEARCH)
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf_file} exec {real} "$@"\n')
        srun.chmod(0o755)

    def _start(self, program: str, *arguments: str) -> None:
        path = shutil.which(program, path=SEARCH)
        with (self.folder / "log" / f"{program}.out").open("wb") as out:
            self._daemons.append(subprocess.Popen([str(path), *arguments], stdout=out, stderr=out))

    def _wait_for(self, what: str, ready: object) -> None:
        for _ in range(600):
            if callable(ready) and ready():
                return
            time.sleep(0.1)
        logs = "\n".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in self.folder.glob("log/*"))
        raise RuntimeError(f"no {what} after a minute\n{logs}")

    def ask(self, *command: str) -> str:
        """Return what a client says; empty if it fails."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout

    def jobs(self) -> list[Job]:
        """Return all jobs so far, by number."""
        found = []
        for line in self.ask("scontrol", "show", "jobs", "--oneliner").splitlines():
            facts = dict(re.findall(r"(?:^| )([A-Za-z/:]+)=(\S*)", line))
            if "JobId" not in facts:
                continue
            submitted = _time(facts["SubmitTime"])
            assert submitted is not None
            found.append(
                Job(
                    number=int(facts["JobId"]),
                    state=facts["JobState"],
                    comment=facts["Comment"],
                    partition=facts["Partition"],
                    gpu=facts.get("TresPerJob", ""),
                    memory_mb=_megabytes(facts["MinMemoryNode"]),
                    submitted=submitted,
                    begun=_time(facts["StartTime"]),
                    ended=_time(facts["EndTime"]),
                )
            )
        return sorted(found, key=lambda job: job.number)
