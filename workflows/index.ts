export { deliverNotification } from './deliver-notification';
export { applyRetention } from './apply-retention';
