import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import { Issues } from '#kernel/issues.ts'
import { type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { list, parsed, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  userName: text({ about: 'The `uid` of anonymous callers; what the mechanism says when absent.' }),
}

const initParameters = {
  userName: parsed('name', readName, {
    about: 'The name of anonymous callers, as an attribute and its value, or only the value of `uid`.',
    fallback: { attribute: 'uid', value: 'Anonymous' },
  }),
  '<attribute>': list({ about: 'The values of another attribute of anonymous callers.' }),
}

/** Every caller passes, under one name. The rules decide what they may do. */
export default defineAuthMechanism({
  className: 'auth.Anonymous',
  aliases: ['com.tremolosecurity.proxy.auth.AnonAuth'],
  parameters,
  initParameters,
  parse: (params, issues, context, init) => {
    const { userName } = readParameters(parameters, params, issues, context)
    const { userName: named, '<attribute>': more } = readParameters(initParameters, init, new Issues(), context)
    return { ...(userName === undefined ? named : { attribute: 'uid', value: userName }), more }
  },
  create: ({ attribute, value, more }) => {
    const attributes = Attributes.from({ [attribute]: [value], objectClass: ['inetOrgPerson'] })
    for (const [name, values] of more) attributes.set(name, values)
    let last: { readonly root: string; readonly outcome: AuthOutcome } | undefined
    return {
      async begin({ root }) {
        if (last?.root !== root) {
          const dn = Dn.parse(root).child(attribute, value)
          const subject = { dn, identity: ownIdentity('anonymous'), uid: value, attributes }
          last = { root, outcome: { kind: 'authenticated', subject } }
        }
        return last.outcome
      },
    }
  },
})

function readName(written: string): { readonly attribute: string; readonly value: string } {
  if (!written.includes('=')) return { attribute: 'uid', value: written }
  const [first, ...others] = Dn.parse(written).rdns
  const [named, ...more] = first === undefined ? [] : first
  if (named === undefined || others.length + more.length > 0) {
    throw new Error(`must be one attribute and its value, such as uid=Anonymous, not "${written}"`)
  }
  return { attribute: named.type, value: named.value }
}
