import type { BuildContext } from '#config/build-context.ts'
import { Dn } from '#identity/dn.ts'
import type { Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { AuthenticationChainSpec } from '#model/authentication-chain.ts'
import type { AuthenticationMechanismSpec } from '#model/authentication-mechanism.ts'
import { readParameters } from '#sdk/parameters.ts'

export function buildMechanism(spec: AuthenticationMechanismSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const module = context.module(state.catalog.authMechanisms, spec.className, ['spec', 'className'])
  const init = context.params(spec.init, ['spec', 'init'], spec.secretParams, ['spec', 'secretParams'])
  if (module !== undefined) readParameters(module.initParameters, init, issues, context)
  state.draft.mechanisms.set(placed.name, module === undefined ? undefined : { module, init })
}

export function buildChain(spec: AuthenticationChainSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  checkRoot(spec.root, context)
  if (spec.compliance?.enabled === true) {
    issues.warning(['spec', 'compliance', 'enabled'], 'account lock-out is read but not served by this version')
  }
  const mechanisms = spec.authMechs.flatMap(({ name, required, params, secretParams }, i) => {
    const path = ['spec', 'authMechs', i]
    context.refer('mechanism', name, [...path, 'name'])
    const isRequired = readRequired(required, [...path, 'required'], context)
    const read = context.params(params, [...path, 'params'], secretParams, [...path, 'secretParams'])
    const mechanism = state.draft.mechanisms.get(name)
    if (mechanism === undefined) return []
    const prepared = mechanism.module.prepare(read, mechanism.init, issues, context)
    return [{ name, required: isRequired, at: context.at(path), mechanism: prepared }]
  })
  const config = {
    ...placed,
    level: spec.level,
    root: spec.root === '' ? undefined : spec.root,
    finishOnRequiredSuccess: spec.finishOnRequiredSuccess ?? spec.finishOnRequiredSucess ?? false,
    mechanisms,
  }
  state.draft.chains.set(placed.name, { config, document: context.document })
}

const requiredWords = ['required', 'optional', 'sufficient'] as const

/** A mistyped word must not make a mechanism one that callers may fail. */
function readRequired(text: string, path: Path, { issues }: BuildContext): boolean {
  const word = requiredWords.find((known) => known === text.toLowerCase())
  if (word === undefined) {
    issues.error(path, `must be one of ${requiredWords.join(', ')}, not "${text}"${suggestion(text, requiredWords)}`)
  }
  return word === 'required'
}

function checkRoot(root: string | undefined, context: BuildContext): void {
  if (root === undefined || root === '') return
  try {
    Dn.parse(root)
  } catch (error) {
    context.issues.error(['spec', 'root'], error instanceof Error ? error.message : String(error))
  }
}
