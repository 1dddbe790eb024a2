export { deliverNotification } from './deliver-notification';
export { applyRetention } from './apply-retention';

// This module and its imports are loaded once for all runs of a worker thread (`preloadModules`). So
// none of them may have state that changes.

// The SDK takes a stack trace for every promise. Ten frames each would be a sixth of the cost of a run,
// and one frame names the line that threw.
Error.stackTraceLimit = 1;
