import os, time, logging
from stream.errors import UserError
def add(worker, shared, n):
    worker.tell(("n", n)); 
    if n==3: logging.getLogger("stream.x").warning("hey %s", n)
    return int(shared.get()["a"].sum())+n
def fail(worker): raise UserError("no such thing")
def die(worker): os._exit(3)
def until_stopped(worker):
    while not worker.stopping(): time.sleep(.01)
    return "stopped"
