"""Two networks on one machine, and a cable between them that can be pulled out.

Each network is a namespace with one address. Between them are two bridges in a third one: when the link that joins the
bridges is down, nobody sees anything but silence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from types import TracebackType

SIDES = ("a", "b")


class NotPermitted(Exception):
    """This machine, or this user, cannot have namespaces."""


class TwoNetworks:
    def __init__(self) -> None:
        self._prefix = f"epicast{os.getpid()}"
        self.addresses = {"a": "10.77.0.1", "b": "10.77.0.2"}

    def __enter__(self) -> TwoNetworks:
        if shutil.which("ip") is None:
            raise NotPermitted("there is no `ip` command")
        try:
            self._build()
        except subprocess.CalledProcessError as error:
            self._tear_down()
            raise NotPermitted(f"ip: {error.stderr.decode().strip()}") from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tear_down()

    def within(self, side: str) -> list[str]:
        """The words before a command that is to run there."""
        return ["ip", "netns", "exec", self._name(side)]

    def pull(self) -> None:
        self._ip(f"-n {self._name('middle')} link set cable-a down")

    def plug(self) -> None:
        self._ip(f"-n {self._name('middle')} link set cable-a up")

    def _name(self, which: str) -> str:
        return f"{self._prefix}-{which}"

    def _build(self) -> None:
        middle = self._name("middle")
        for which in ("middle", *SIDES):
            self._ip(f"netns add {self._name(which)}")
            self._ip(f"-n {self._name(which)} link set lo up")
        for side in SIDES:
            there = self._name(side)
            self._ip(f"-n {middle} link add bridge-{side} type bridge")
            self._ip(f"-n {middle} link set bridge-{side} up")
            self._ip(f"link add net0 netns {there} type veth peer name port-{side} netns {middle}")
            self._ip(f"-n {middle} link set port-{side} master bridge-{side} up")
            self._ip(f"-n {there} addr add {self.addresses[side]}/24 dev net0")
            self._ip(f"-n {there} link set net0 up")
        self._ip(f"-n {middle} link add cable-a type veth peer name cable-b")
        for side in SIDES:
            self._ip(f"-n {middle} link set cable-{side} master bridge-{side} up")

    def _tear_down(self) -> None:
        for which in ("middle", *SIDES):
            subprocess.run(["ip", "netns", "del", self._name(which)], capture_output=True, check=False)

    def _ip(self, words: str) -> None:
        subprocess.run(["ip", *words.split()], capture_output=True, check=True)
