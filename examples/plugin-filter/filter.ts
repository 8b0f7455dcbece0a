// A filter that greets callers, and passes on what it does not know. Every function may be async. They are explained in
// docs/guides/writing-a-plugin.md.
import type {
  PluginConfig,
  PluginFilterAnswer,
  PluginFilterContext,
  PluginRequest,
} from '../../src/sdk/plugin/plugin-types.ts'

let greeting = 'Hello'

/** Parameters of the YAML come as { name: ['value', …] }. What is thrown here refuses the configuration. */
export function init(config: PluginConfig, _name: string): void {
  greeting = config['greeting']?.[0] ?? greeting
}

/** An answer, or { next: true } to leave it to the next filter. Anything else, and what is thrown, fails the request. */
export function handle(request: PluginRequest, context: PluginFilterContext): PluginFilterAnswer {
  if (context.pathInfo !== '' && context.pathInfo !== '/') return { next: true }
  if (request.method !== 'GET')
    return { status: 405, headers: { allow: 'GET' }, json: { error: 'Only GET is served.' } }
  const [name = context.subject.uid] = request.query['name'] ?? []
  context.log.debug('greeted', { name })
  return { status: 200, json: { message: `${greeting}, ${name}!` } }
}
