import { getApplicationForPartner } from './credit-applications';
import { getFinanceQuote } from './get-finance-quote';
import { notificationOperations } from './notifications';
import { recoveryOperations } from './recoveries';
import { sandboxOperations } from './sandbox';
import { sendTestNotification } from './send-test-notification';
import { webhookOperations } from './webhooks';

/** What partners can call, in the order of the document. It is made of this list, and so is the listener (`serve`). */
export const partnerOperations = [
  getFinanceQuote,
  sendTestNotification,
  ...notificationOperations,
  ...recoveryOperations,
  getApplicationForPartner,
  ...sandboxOperations,
  ...webhookOperations,
] as const;
