export { type ReceiverOptions, type RunningReceiver, startReceiver } from './start';
