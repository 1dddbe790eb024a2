import './index';

// Loaded once for all runs of a worker thread, before any of them exists, where everything else is loaded anew for each. So no
// module of this folder, or of what it imports, may keep anything that changes.

// The SDK takes a stack for every promise, for a query that ours (`progress`) stands in for: ten frames each are a sixth of what
// a run costs. One names the line that threw, which is what a fault of ours needs; a delivery itself throws none.
Error.stackTraceLimit = 1;
