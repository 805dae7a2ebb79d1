"""Everything a proof of privacy rests on: noise, sampling, accounting, mechanisms."""
