"""Real nodes on real databases that are killed, stopped, cut off and moved while people talk to them.

    make chaos MINUTES=30 SEED=7 ENGINE=postgres

The seed decides who does what and what fails when; what the machine makes of it differs from run to run.
"""
