// A workflow task that gives a person a mail address. Every function may be async. They are explained in
// docs/guides/writing-a-plugin.md.
import type {
  PluginConfig,
  PluginTaskContext,
  PluginTaskRequest,
  PluginTaskUser,
} from '../../src/sdk/plugin/plugin-types.ts'

let domain = ''

/** Parameters of the YAML come as { name: ['value', …] }. What is thrown here refuses the configuration. */
export function init(_task: { name: string }, config: PluginConfig): void {
  domain = config['domain']?.[0] ?? ''
  if (domain === '') throw new Error('the parameter "domain" is required')
}

/**
 * What is changed in the user and the request is changed in the workflow. True goes on, false stops the workflow, and what
 * is thrown fails it: with the code 'unreachable', a retry may succeed.
 */
export function doTask(user: PluginTaskUser, request: PluginTaskRequest, context: PluginTaskContext): boolean {
  if (request['status'] === 'blocked') return false
  const [mail] = user.attributes['mail'] ?? []
  if (mail === undefined) {
    user.attributes['mail'] = [`${user.userID.toLowerCase()}@${domain}`]
    context.log('mail address given', { userID: user.userID })
  }
  return true
}
