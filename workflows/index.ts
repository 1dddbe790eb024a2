export { deliverNotification } from './deliver-notification';
