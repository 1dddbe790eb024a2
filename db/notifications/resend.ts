import { TEST_EVENT_TYPE } from '../../domain/test-event-type';
import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { Change } from '../audit/change-log';
import type { EndpointQueue } from './hold';
import { lockNotification, type Notification } from './read';
import { Refused } from '../refused';
import { applyEvent } from './transition';
import { monthUse, reserveMonth, TEST_LIMIT_PER_MONTH } from './quota';
import { SOMETHING_IS_DUE } from './channels';
import { activeEndpointExists } from '../endpoints/endpoints';

/** What is sent again, and as which generation. */
interface ResentNotification {
  readonly was: Notification;
  readonly generation: number;
}

/** What the change log says of it. */
export const resendChange = ({ was, generation }: ResentNotification, actor: string): Change => ({
  actor,
  action: 'notifications.resend',
  subject: was.notificationId,
  details: { partner_id: was.partnerId, generation, was: was.state },
});

export class EndpointMissing extends Refused {
  constructor({ partnerId, environment }: Pick<Notification, 'partnerId' | 'environment'>) {
    const what = `${partnerId} has no active ${environment} endpoint`;
    super('conflict', `${what}: register or enable one first (ops webhooks).`);
  }
}

/** It cannot be sent again; `why` is for partners. */
export class NotResendable extends Refused {
  constructor(
    readonly why: 'under_way' | 'not_undelivered' | 'test' | 'payload_removed',
    message: string,
  ) {
    super('conflict', message);
  }
}

interface ResendOptions {
  /** Refuse one that was delivered once, or cancelled. Default: false. */
  readonly undeliveredOnly?: boolean;
  /** 0: with what is live; 1: after all of that. Default: 0. */
  readonly priority?: 0 | 1;
  /** The recovery that it is sent again for. Default: the one before, if any. */
  readonly recoveryId?: string;
  /** A partner asks, for one of its own: others do not exist for it, and tests are not sent again. */
  readonly owner?: EndpointQueue;
}

/**
 * Sends a notification that has ended, or is held, again: due now, under the next generation, with the same event id and
 * body. A test first takes a unit of this month's limit.
 * @throws Refused when it is missing or the limit is reached; NotResendable; EndpointMissing.
 */
export async function resendNotification(
  tx: DbOrTransaction,
  notificationId: string,
  options: ResendOptions = {},
): Promise<ResentNotification> {
  const { undeliveredOnly = false, priority = 0, recoveryId = null, owner } = options;
  const was = await lockNotification(tx, notificationId, owner);
  if (was === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  if (was.state === 'pending' || was.state === 'started') {
    throw new NotResendable(
      'under_way',
      `Notification ${notificationId} is under way: use retry-now instead.`,
    );
  }
  if (owner !== undefined && was.eventType === TEST_EVENT_TYPE) {
    throw new NotResendable('test', `Notification ${notificationId} is a test: send a new one.`);
  }
  if (undeliveredOnly && (was.deliveredAt !== null || was.state === 'cancelled')) {
    throw new NotResendable('not_undelivered', `Notification ${notificationId} was ${was.state} meanwhile.`);
  }
  if (was.body === '') {
    const why = 'its body was removed, as its time of keeping is over (ops retention show)';
    throw new NotResendable(
      'payload_removed',
      `Notification ${notificationId} cannot be sent again: ${why}.`,
    );
  }
  if (!(await activeEndpointExists(tx, was))) throw new EndpointMissing(was);
  const generation = was.generation + 1;
  const reservedMonth = was.eventType === TEST_EVENT_TYPE ? await unitOfTest(tx, was) : null;
  await applyEvent(tx, was, 'resend', {
    priority: sql`${priority}`,
    reserved_month: sql`${reservedMonth}::date`,
    recovery_id: sql`coalesce(${recoveryId}, t.recovery_id)`,
  });
  hint(tx, SOMETHING_IS_DUE);
  return { was, generation };
}

/** Every notification counts once: a test that was delivered could be delivered again without being counted. */
async function unitOfTest(tx: DbOrTransaction, was: Notification): Promise<string> {
  if (was.deliveredAt !== null) {
    throw new Refused(
      'conflict',
      `Test notification ${was.notificationId} was delivered: send a new one (ops webhooks test).`,
    );
  }
  const month = await reserveMonth(tx, was);
  if (month !== null) return month;
  const { delivered, reserved, monthEndsAt } = await monthUse(tx, was);
  throw new Refused(
    'conflict',
    `The limit of ${TEST_LIMIT_PER_MONTH} test notifications is reached for ${was.partnerId}, ${was.environment}: ` +
      `${delivered} delivered and ${reserved} under way this month, which ends at ${monthEndsAt.toISOString()}.`,
  );
}
