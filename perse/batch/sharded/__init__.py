"""Many examples in shards: planned once, judged by any number of workers that may come and go, audited and merged."""
