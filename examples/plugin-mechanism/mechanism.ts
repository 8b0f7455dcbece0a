// A mechanism that knows callers by a key in the header X-API-Key. Every function may be async. They are explained in
// docs/guides/writing-a-plugin.md.
import { createHash } from 'node:crypto'
import type {
  PluginConfig,
  PluginMechanismAnswer,
  PluginMechanismContext,
  PluginRequest,
} from '../../src/sdk/plugin/plugin-types.ts'

/** The SHA-256 of each key, in hex, with its owner: the keys themselves are nowhere. */
const owners = new Map<string, string>()

/** Parameters of the YAML, secret ones among them, come as { name: ['value', …] }. What is thrown refuses the configuration. */
export function init(config: PluginConfig, _name: string): void {
  for (const client of config['client'] ?? []) {
    const [, name, digest] = /^([\w.-]+):([0-9a-f]{64})$/.exec(client) ?? []
    if (name === undefined || digest === undefined) throw new Error('a client is "name:SHA-256 of its key in hex"')
    owners.set(digest, name)
  }
}

/** The caller, or a refusal with its reason for the log. Anything else, and what is thrown, fails the request. */
export function authenticate(request: PluginRequest, _context: PluginMechanismContext): PluginMechanismAnswer {
  const headers = { 'www-authenticate': 'ApiKey' }
  const [key, ...others] = request.headers['x-api-key'] ?? []
  if (key === undefined || key === '') return { refused: 'no key was sent', headers, noCredential: true }
  const owner = owners.get(createHash('sha256').update(key).digest('hex'))
  if (owner === undefined || others.length > 0) return { refused: 'the key is unknown', headers }
  return { subject: { uid: owner, attributes: { role: ['api-client'] } } }
}
