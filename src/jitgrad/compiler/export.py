"""`export`: placeholder until inference export lands."""
