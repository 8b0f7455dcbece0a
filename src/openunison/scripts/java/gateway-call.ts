import { askBridge } from './host-bridge.ts'
import { IOException, ProvisioningException, UnsupportedOperationException } from './java-exception.ts'

type Answer =
  | { readonly value: unknown }
  | { readonly failure: 'unreachable' | 'refused' | 'unsupported'; readonly message: string }

/** Asks the gateway for something that it has: a target, an entry of the directory. Waits for the answer. */
export function askGateway(service: string, request: object): unknown {
  const answer = askBridge('gateway', { service, ...request }) as Answer
  if (!('failure' in answer)) return answer.value
  if (answer.failure === 'unreachable') throw new IOException(answer.message)
  if (answer.failure === 'unsupported') throw new UnsupportedOperationException(answer.message)
  throw new ProvisioningException(answer.message)
}
