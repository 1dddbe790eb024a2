import { checkWebhookUrl, type WebhookUrlFault } from '../domain/webhook-url';
import { createAddressGuard } from './addresses';
import { DeliveryFault } from './delivery-fault';
import { resolveTarget } from './resolve';
import { SEND_TIMEOUTS, type SenderOptions } from './sender';

type Reason = WebhookUrlFault | 'dns' | 'blocked_address';
export type RegistrationCheck =
  | {
      readonly ok: true;
      readonly url: string;
      readonly hostname: string;
      readonly addresses: readonly string[];
    }
  | { readonly ok: false; readonly reason: Reason; readonly message: string };

/**
 * Checks a URL before it is registered: its form, that its name resolves, and that every address is one we may connect
 * to. Nothing is connected to.
 * @throws what is our own fault, such as no DNS server.
 */
export async function checkRegistrationTarget(
  url: string,
  options: Pick<SenderOptions, 'allowedCidrs' | 'allowedPorts' | 'resolver' | 'hosts' | 'timeouts'>,
): Promise<RegistrationCheck> {
  const { hosts = new Map(), allowedPorts, resolver, timeouts } = options;
  const target = checkWebhookUrl(url, { allowedPorts, allowedNames: new Set(hosts.keys()) });
  if (!target.ok) return target;
  const isAllowed = createAddressGuard(options.allowedCidrs);
  const dnsMs = timeouts?.dnsMs ?? SEND_TIMEOUTS.dnsMs;
  const never = new AbortController().signal;
  try {
    const addresses = await resolveTarget(target.hostname, { resolver, hosts, isAllowed, dnsMs }, never);
    return { ok: true, url: target.url, hostname: target.hostname, addresses };
  } catch (error) {
    if (!(error instanceof DeliveryFault)) throw error;
    const { failure, detail } = error;
    if (failure === 'dns')
      return { ok: false, reason: 'dns', message: `The URL's host does not resolve (${detail}).` };
    const message = `The URL leads to where webhooks may not go: ${detail}.`;
    return { ok: false, reason: 'blocked_address', message };
  }
}
