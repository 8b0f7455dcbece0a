import { formatIssue } from '#config/located-issue.ts'
import { anonymous } from '#engine/pipeline/authenticate.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { Scope } from '#kernel/scope.ts'
import type { CommandIo } from '#server/commands/command-line.ts'
import { messageOf, readArguments, wrongUsage } from '#server/commands/command-line.ts'
import { configUsage, directoryUsage, loadOnce, openRuntime, secretsUsage } from '#server/commands/installation.ts'
import { explainRequest } from '#server/explain-request.ts'

const usage = `Show why a request would be allowed or denied: the application, chain, rules and filters that decide it.

Usage:
  gatehouse explain --config SOURCE [options] METHOD URL

Options:
${configUsage}
  --as NAME=VALUE          Attribute of the caller: dn, uid, level or any other; can be repeated (default anonymous).
                           Rules about names need dn, such as --as dn=sub=idp,ou=oauth2,o=Tremolo
${directoryUsage}
${secretsUsage}

Exit code: 0 if the request would be allowed, 1 if it would be denied.`

const options = {
  config: { type: 'string' },
  as: { type: 'string', multiple: true },
  data: { type: 'string' },
  database: { type: 'string' },
  secrets: { type: 'string' },
} as const

export async function explainCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { command: 'explain', usage, options, positionals: 2, names: ['METHOD', 'URL'] }, io)
  if ('exit' in read) return read.exit
  const { values, positionals } = read
  const [method = '', address = ''] = positionals
  const wrong = (message: string): number => wrongUsage('explain', message, io)
  if (values.config === undefined) return wrong('--config is required')
  if (!URL.canParse(address)) return wrong(`"${address}" is not a URL`)
  const scope = new Scope()
  try {
    const { loaded, secrets } = await loadOnce({ config: values.config, secrets: values.secrets }, false, scope)
    const { configuration, issues } = loaded
    if (configuration === undefined) {
      for (const issue of issues) io.stderr(formatIssue(issue))
      return 1
    }
    let caller: ReturnType<typeof parseCaller>
    try {
      caller = parseCaller(values.as ?? [], configuration.directoryRoot)
    } catch (error) {
      return wrong(messageOf(error))
    }
    const runtime = await openRuntime(configuration, secrets, values, scope)
    const explanation = await explainRequest(runtime, method.toUpperCase(), new URL(address), caller)
    for (const line of explanation.lines) io.stdout(line)
    if (explanation.deniedByName && !values.as?.some((pair) => pair.startsWith('dn='))) {
      io.stdout(
        'note         the name of the caller is derived from --as; if the chain makes another one, add --as dn=NAME',
      )
    }
    return explanation.allowed ? 0 : 1
  } catch (error) {
    io.stderr(`gatehouse explain: ${messageOf(error)}`)
    return 1
  } finally {
    await scope.close()
  }
}

/**
 * The caller that `--as NAME=VALUE` describes; anonymous without any. Without `dn=`, the caller's name is derived
 * from `uid=`, or from the first attribute, below the root of the directory. Without `dn=` and `uid=`, the
 * attributes are claims of a token, whose letter case counts. Throws an Error for a text that is not NAME=VALUE.
 */
function parseCaller(pairs: readonly string[], directoryRoot: Dn): Subject {
  if (pairs.length === 0) return anonymous
  const attributes = new Attributes()
  let dn: Dn | undefined
  let level: number | undefined
  for (const pair of pairs) {
    const equals = pair.indexOf('=')
    if (equals < 1) throw new Error(`--as takes NAME=VALUE, not "${pair}"`)
    const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)]
    if (name === 'dn') dn = Dn.parse(value)
    else if (name === 'level') level = Number(value)
    else attributes.add(name, [value])
  }
  if (level !== undefined && !Number.isInteger(level)) throw new Error('--as level= takes a whole number')
  const [naming = ['uid', ['unknown']] as const] = [...attributes]
  const uid = attributes.first('uid') ?? dn?.rdns[0]?.[0]?.value ?? naming[1][0] ?? 'unknown'
  const isOfDirectory = dn !== undefined || attributes.has('uid')
  const name = directoryRoot.child(attributes.has('uid') ? 'uid' : naming[0], uid)
  return {
    dn: dn ?? (isOfDirectory ? name : name.claimed()),
    identity: ownIdentity('command line'),
    uid,
    attributes: isOfDirectory ? attributes : attributes.claimed(),
    level: level ?? Number.MAX_SAFE_INTEGER,
    chain: '',
  }
}
