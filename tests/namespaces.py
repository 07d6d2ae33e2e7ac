"""Two machines on one: network namespaces with names, addresses and loopbacks of their own, joined by a cable.

They share the files of this machine, as a cluster shares its work directory.
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress

NAMES, ADDRESSES = ('node0', 'node1'), ('10.77.0.1', '10.77.0.2')
CABLE = 'cable0'  # the network interface at each end of it
HOSTS = '127.0.0.1 localhost\n' + ''.join(f'{address} {name}\n' for address, name in zip(ADDRESSES, NAMES))
# A command with a host name and an /etc/hosts of its own, which $1 and $2 name.
ENTER = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'


def ip(*arguments):
    return subprocess.run(['ip', *arguments], check=True, capture_output=True, text=True).stdout


class Machine:
    """One of the two."""

    def __init__(self, index):
        self.name, self.address = NAMES[index], ADDRESSES[index]
        self.namespace = f'vt{os.getpid()}-{self.name}'

    def start(self, *command, output, **kwargs):
        """Start a command that prints to a file, and finds the machines by their names."""
        names = output.with_suffix('.hosts')
        names.write_text(HOSTS)
        enter = ['ip', 'netns', 'exec', self.namespace, 'unshare', '--uts', 'sh', '-c', ENTER, 'sh', self.name, names]
        with output.open('w') as file:
            return subprocess.Popen([*enter, *command], stdout=file, stderr=file, **kwargs)

    def set_cable(self, state):
        """Take the cable out, ``'down'``, or put it in, ``'up'``."""
        ip('-n', self.namespace, 'link', 'set', CABLE, state)

    def kill(self):
        """SIGKILL to all processes of this machine, until none is left."""
        while processes := ip('netns', 'pids', self.namespace).split():
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            time.sleep(0.01)


@contextmanager
def two_machines():
    """The machines, with the cable in; nothing of them is left afterwards."""
    machines = [Machine(index) for index in range(2)]
    with ExitStack() as stack:
        for machine in machines:
            ip('netns', 'add', machine.namespace)
            stack.callback(ip, 'netns', 'delete', machine.namespace)  # the cable goes with it
            stack.callback(machine.kill)
            ip('-n', machine.namespace, 'link', 'set', 'lo', 'up')
        ends = [['netns', machine.namespace] for machine in machines]
        ip('link', 'add', CABLE, *ends[0], 'type', 'veth', 'peer', 'name', CABLE, *ends[1])
        for machine in machines:
            ip('-n', machine.namespace, 'address', 'add', f'{machine.address}/24', 'dev', CABLE)
            machine.set_cable('up')
        yield machines


def why_not():
    """Why this machine can't be two; empty where it can."""
    if os.geteuid() != 0 or not all(map(shutil.which, ('ip', 'unshare', 'mount', 'hostname'))):
        return 'network namespaces need root, and the commands ip, unshare, mount and hostname'
    try:
        with two_machines():
            return ''
    except subprocess.CalledProcessError as error:
        return f'no network namespaces here: {error.stderr.strip()}'
