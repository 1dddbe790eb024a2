export * from './api-keys';
export * from './change-log';
export * from './merchants';
export * from './partners';
export * from './products';
export * from './quotes';
export * from './notifications';
export * from './webhooks';
