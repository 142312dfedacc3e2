"""What runs in several processes is no test of one: `run.py` calls it, under mpiexec."""

collect_ignore_glob = ["run.py", "*_together.py", "programs/*"]
