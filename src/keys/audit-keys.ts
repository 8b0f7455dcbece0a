import type { AuditKey } from '#database/audit-seal.ts'
import {
  derivedKey,
  loadSecretKeys,
  presentSecretKeys,
  readSecretKeys,
  type SecretKey,
  type SecretKeySource,
} from './secret-keys.ts'

const variable = 'GATEHOUSE_AUDIT_KEY'
const purpose = 'gatehouse audit'

/**
 * The keys that seal the audit: those of GATEHOUSE_AUDIT_KEY, in base64 and separated by commas, or keys derived
 * from the secret keys of the installation. The first seals, all of them verify. Gateways that share a database
 * must share them. A command does not create a key: without the installation's, it has none.
 */
export async function loadAuditKeys(source: SecretKeySource, who: 'gateway' | 'command'): Promise<readonly AuditKey[]> {
  const given = readSecretKeys(source.environment, variable)
  if (given !== undefined) return given
  return (await (who === 'command' ? presentSecretKeys(source) : loadSecretKeys(source))).map(derived)
}

/** Throws an Error, without the value, if the variable is not a list of keys. */
export function checkAuditKeys(environment: SecretKeySource['environment']): void {
  readSecretKeys(environment, variable)
}

const derived = ({ key }: SecretKey): AuditKey => derivedKey(key, purpose)
