import type { JsonValue } from '#kernel/json.ts'
import { linkSubject, type SubjectLink } from '#modules/shared/login/linked-subject.ts'
import { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import { loadPluginCode, type PluginCode } from '#modules/shared/plugin/plugin-code.ts'
import { plainRequest, plainSubject } from '#modules/shared/plugin/plugin-request.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { AuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { readMechanismAnswer } from './mechanism-answer.ts'

export interface PluginMechanismConfig {
  readonly code: PluginCode
  readonly link: SubjectLink
  readonly maxBodyBytes: number
}

const functionName = 'authenticate'
const nothing: ReadonlySet<string> = new Set()

/**
 * Loads the code and runs `init`; rejects with the reason when either fails. The plug-in names a caller or refuses; when
 * it does neither the request fails, whether or not the chain requires the mechanism.
 */
export async function openPluginMechanism(
  { code, link, maxBodyBytes }: PluginMechanismConfig,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript' | 'directory'>,
): Promise<AuthMechanism> {
  const plugin = await PluginHost.open({
    ...(await loadPluginCode(code, host)),
    name: `the plug-in mechanism "${host.name}"`,
    functions: ['init', functionName, 'shutdown'],
    globals: { name: host.name },
    timeoutMillis: code.timeoutMillis,
    memoryMegabytes: code.memoryMegabytes,
    log: host.log,
    start: () => [{ function: 'init', args: [code.config, host.name] }],
  })
  if (!plugin.has(functionName)) {
    await plugin.close()
    throw new Error(`the mechanism's code has no function ${functionName}`)
  }
  return {
    async begin({ request, subject, root }) {
      const context: JsonValue = { subject: subject === undefined ? null : plainSubject(subject) }
      const { value } = await plugin.call({
        function: functionName,
        args: [await plainRequest(request, { maxBodyBytes, withheld: nothing }), context],
        request: 1,
      })
      const answer = readMechanismAnswer(value, new PluginAnswerReader(functionName))
      if (answer.kind === 'rejected') return answer
      const claims = answer.attributes
      claims.set(link.uidAttr, [answer.uid])
      const linked = await linkSubject(claims, link, root, host)
      if (linked.kind === 'refused') return { kind: 'rejected', reason: linked.reason }
      return { kind: 'authenticated', subject: linked.subject }
    },
    close: () => plugin.close(),
  }
}
