export { deliverNotification } from './deliver-notification';
export { applyRetention } from './apply-retention';

// This module and its imports are loaded once for all runs of a worker thread (`preloadModules`), and not anew for each run. So none
// of them may keep state that changes.

// The SDK takes a stack trace for every promise; ten frames each are a sixth of the cost of a run. One frame names the line that threw.
Error.stackTraceLimit = 1;
