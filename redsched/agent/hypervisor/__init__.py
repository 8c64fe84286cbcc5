"""The collector of a machine that runs virtual machines under libvirt."""
