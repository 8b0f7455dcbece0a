import type { LoginLimits } from '#config/configuration/configuration.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import { unservedClass } from '#config/context/unknown-class.ts'
import type { ResultGroupSpec } from '#config/kinds/application.ts'
import type { AuthenticationChainSpec, AuthenticationMechanismSpec } from '#config/kinds/authentication.ts'
import { Dn } from '#identity/dn.ts'
import type { Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { readParameters } from '#sdk/module/parameters.ts'

export function buildMechanism(spec: AuthenticationMechanismSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const module = context.module(state.catalog.authMechanisms, spec.className, ['spec', 'className'])
  const init = context.params(spec.init, ['spec', 'init'], spec.secretParams, ['spec', 'secretParams'])
  if (module !== undefined) readParameters(module.initParameters, init, issues, context)
  state.draft.mechanisms.set(placed.name, module === undefined ? undefined : { module, init, uri: spec.uri })
}

export function buildChain(spec: AuthenticationChainSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  checkRoot(spec.root, context)
  const mechanisms = spec.authMechs.flatMap(({ name, required, params, secretParams }, i) => {
    const path = ['spec', 'authMechs', i]
    context.refer('mechanism', name, [...path, 'name'])
    const isRequired = readRequired(required, [...path, 'required'], context)
    const read = context.params(params, [...path, 'params'], secretParams, [...path, 'secretParams'])
    const mechanism = state.draft.mechanisms.get(name)
    if (mechanism === undefined) return []
    const prepared = mechanism.module.prepare(read, mechanism.init, issues, context)
    return [{ name, uri: mechanism.uri, required: isRequired, at: context.at(path), mechanism: prepared }]
  })
  const config = {
    ...placed,
    level: spec.level,
    root: spec.root === '' ? undefined : spec.root,
    finishOnRequiredSuccess: spec.finishOnRequiredSuccess ?? spec.finishOnRequiredSucess ?? false,
    limits: readLimits(spec.compliance, context),
    mechanisms,
  }
  state.draft.chains.set(placed.name, { config, document: context.document })
}

/** Failures are counted in storage, so the attributes in which OpenUnison kept them are not needed. */
function readLimits(spec: AuthenticationChainSpec['compliance'], context: BuildContext): LoginLimits | undefined {
  if (spec?.enabled !== true) return undefined
  const path = ['spec', 'compliance']
  const { maxFailedAttempts, maxLockoutTime } = spec
  const atLeastOne = (name: string, value: number | undefined): number => {
    if (value === undefined) context.issues.error([...path, name], 'is required where compliance is enabled')
    else if (value < 1) context.issues.error([...path, name], `must be at least 1, not ${value}`)
    return Math.max(1, value ?? 1)
  }
  return {
    maxFailedAttempts: atLeastOne('maxFailedAttempts', maxFailedAttempts),
    lockoutMillis: atLeastOne('maxLockoutTime', maxLockoutTime),
  }
}

const requiredWords = ['required', 'optional', 'sufficient'] as const

/** A mistyped word must not make a mechanism optional. */
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

export function buildResultGroup(spec: ResultGroupSpec, context: BuildContext): void {
  const { state, issues, placed, document } = context
  const results = spec.flatMap(({ resultType: type, source, value }, i) => {
    if (source === 'custom') {
      const className = value.slice(value.indexOf('=') + 1)
      const unserved = unservedClass('custom result', className)
      issues.error(['spec', i, 'source'], unserved ?? 'the source "custom" is not served: use static or user')
      return []
    }
    if (type !== 'redirect' && !/^[\w!#$%&'*+.^`|~-]+=/.test(value)) {
      issues.error(['spec', i, 'value'], `a ${type} is written as name=value, not "${value}"`)
    }
    return [{ type, source, value }]
  })
  if (results.length === spec.length) state.draft.resultGroups.set(placed.name, { ...placed, results, document })
}
