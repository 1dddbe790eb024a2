import { decodeTime, encodeTime } from 'ulid';

const PREFIX = 'ntf_';

/** When a notification was created, in Unix milliseconds: its id says so, and pages and months go by that. */
export const createdMs = (notificationId: string): number => decodeTime(notificationId.slice(PREFIX.length));

/** The lowest id that a notification created at this moment (Unix milliseconds) or later can have. */
export const lowestNotificationId = (ms: number): string => `${PREFIX}${encodeTime(ms)}${'0'.repeat(16)}`;
