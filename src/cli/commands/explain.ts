import { defineCommand, messageOf, readPairs, WrongUsage } from '#cli/command-line/command-line.ts'
import { openRuntime, withConfiguration } from '#cli/command-line/installation.ts'
import { configOption, directoryOptions, outputOption, secretsOption } from '#cli/command-line/options.ts'
import { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'
import { explainedCaller } from '#server/explain/caller.ts'
import { type Detail, detailLines } from '#server/explain/explanation.ts'
import { explainRequest } from '#server/explain/request.ts'

export const explainCommand = defineCommand({
  name: 'explain',
  about: 'Show why a request would be allowed or denied: the application, chain, rules and filters that decide it.',
  usage: '--config SOURCE [options] METHOD URL',
  arguments: ['METHOD', 'URL'],
  options: {
    ...configOption,
    as: {
      value: 'NAME=VALUE',
      multiple: true,
      about: `Attribute of the caller: dn, uid, level or any other; can be repeated (default anonymous).
Rules about names need dn, such as --as dn=sub=idp,ou=oauth2,o=Tremolo`,
    },
    ...directoryOptions,
    ...secretsOption,
    ...outputOption,
  },
  notes: 'Exit code: 0 if the request would be allowed, 1 if it would be denied.',
  examples: ['gatehouse explain --config config --as uid=ada GET https://portal.example.com/main/requests'],
  run: (values, [method = '', address = ''], io) => {
    if (!/^https?:$/.test(URL.parse(address)?.protocol ?? '')) {
      throw new WrongUsage(`"${address}" is not a URL with https:// or http://`)
    }
    return withConfiguration(values, io, async (loaded) => {
      const caller = parseCaller(values.as, loaded.configuration.directoryRoot)
      const runtime = await openRuntime(loaded, values)
      const explanation = await explainRequest(runtime, method.toUpperCase(), new URL(address), caller)
      const isNamed = values.as.some((pair) => pair.startsWith('dn='))
      const found = [...explanation.details, ...(explanation.deniedByName && !isNamed ? [derivedName] : [])]
      const details = found.map(({ about, text, more }) => ({
        about,
        text: withoutSecrets(text),
        more: more?.map(withoutSecrets),
      }))
      for (const line of detailLines(details)) io.stdout(line)
      io.result({ allowed: explanation.allowed, details })
      return explanation.allowed ? 0 : 1
    })
  },
})

const derivedName: Detail = {
  about: 'note',
  text: 'the name of the caller is derived from --as; if the chain makes another one, add --as dn=NAME',
}

/** The caller that `--as NAME=VALUE` describes; anonymous without any. Throws WrongUsage. */
function parseCaller(pairs: readonly string[], directoryRoot: Dn): Subject {
  const attributes = new Map<string, readonly string[]>()
  let dn: Dn | undefined
  let level: number | undefined
  for (const [name, values] of readPairs('as', pairs)) {
    const last = values.at(-1) ?? ''
    if (name === 'dn') dn = readDn(last)
    else if (name === 'level') level = Number(last)
    else attributes.set(name, values)
  }
  if (level !== undefined && !Number.isInteger(level)) throw new WrongUsage('--as level= takes a whole number')
  return explainedCaller({ attributes, dn, level }, directoryRoot)
}

function readDn(text: string): Dn {
  try {
    return Dn.parse(text)
  } catch (error) {
    throw new WrongUsage(messageOf(error))
  }
}
