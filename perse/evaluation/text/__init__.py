"""How near a written review is to the real one."""
