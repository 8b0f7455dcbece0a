import type { BuildContext } from '#config/context/build-context.ts'
import type { StsEndpointSpec } from '#config/kinds/sts.ts'
import { type PresetInjection, presetInjection, providerOf } from '#config/kinds/sts-preset.ts'
import type { Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import {
  isLabelName,
  labelName,
  type PodEndpoint,
  type PodSetting,
  type PodVariable,
} from '#protocols/admission/pod-endpoint.ts'

/** The minimum that every release of Kubernetes accepts. */
const variableName = /^[A-Za-z_.-][A-Za-z0-9_.-]{0,252}$/
const mostVariables = 100
/** What is known of a workload before its pod runs. */
const workloadAttributes: readonly string[] = ['namespace', 'saname', 'cluster', 'workload']
/** The value of the annotation, if no preset has a name for it. */
const annotationValue = 'value'
const noInjection: PresetInjection = { tokenVariable: '', settings: [], identity: {}, other: {} }

type InjectorSpec = NonNullable<StsEndpointSpec['injector']>

/** `injector` of an endpoint; undefined if it has none. */
export function buildPodEndpoint(
  spec: StsEndpointSpec,
  incomingAudience: string,
  clusters: readonly string[],
  path: Path,
  { issues }: BuildContext,
): PodEndpoint | undefined {
  const { injector, preset } = spec
  if (injector === undefined) return undefined
  const at = [...path, 'injector']
  const problem = (place: Path, text: string): void => issues.error([...at, ...place], text)
  if (spec.subjectIssuers !== undefined && clusters.length === 0) {
    problem([], 'sidecars are injected into pods of clusters, and the endpoint names none')
  }
  const known = preset === undefined ? noInjection : presetInjection(preset)
  const tokenVariable = injector.token_environment_variable_name ?? known.tokenVariable
  const valueVariable = injector.label_value_environment_variable_name || undefined
  if (tokenVariable === '') {
    problem(['token_environment_variable_name'], 'is required where the endpoint has no preset')
  }
  for (const [field, name] of [
    ['token_environment_variable_name', tokenVariable || undefined],
    ['label_value_environment_variable_name', valueVariable],
  ] as const) {
    if (name !== undefined && !variableName.test(name))
      problem([field], `"${name}" is not a name of an environment variable`)
  }
  if (valueVariable === tokenVariable) {
    problem(['label_value_environment_variable_name'], 'the variable holds the path of the token already')
  }
  if (!isLabelName(labelName(injector.label))) {
    problem(['label'], `"${injector.label}" is not a valid name of a Kubernetes label, so no pod can have it`)
  }
  const [outer, inner] = [spec.explicit_certificate_trust, injector.explicit_certificate_trust]
  if (outer !== undefined && inner !== undefined && outer !== inner) {
    problem(['explicit_certificate_trust'], 'differs from the value beside "injector": remove one of them')
  }
  const settings = buildSettings(spec, injector, known, valueVariable !== undefined, problem)
  const variables = buildVariables(injector, known, settings, problem)
  const reserved = new Set([tokenVariable, valueVariable])
  return {
    name: spec.name,
    path: spec.path,
    audience: spec.audience,
    incomingAudience,
    label: injector.label,
    tokenVariable,
    valueVariable,
    explicitTrust: outer ?? inner ?? false,
    settings,
    variables: variables.filter(({ name }) => !reserved.has(name)),
    file: known.file,
  }
}

type Problem = (place: Path, text: string) => void

function buildSettings(
  { audience, preset }: StsEndpointSpec,
  { settings: given = {} }: InjectorSpec,
  known: PresetInjection,
  hasValue: boolean,
  problem: Problem,
): PodSetting[] {
  const names = known.settings.map(({ name }) => name)
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    const text =
      preset === undefined
        ? 'an endpoint without a preset has no settings'
        : `the preset "${preset}" has no such setting${suggestion(name, names)}; it has ${names.join(', ') || 'none'}`
    problem(['settings', name], text)
  }
  const settings = known.settings.map(({ name, form, example, needed = false, fallback }): PodSetting => {
    const own = Object.hasOwn(given, name) ? given[name] : undefined
    const text = own ?? (name === 'provider' ? providerOf(audience) : undefined) ?? fallback
    const value = text === undefined ? undefined : template(text, workloadAttributes, ['settings', name], problem)
    if (own !== undefined && value?.attributes.length === 0 && !form.test(own)) {
      problem(['settings', name], `must be a value such as ${example}, not "${own.slice(0, 80)}"`)
    }
    // A required role stays required if its variable is configured.
    return {
      name,
      main: name === known.main,
      form,
      example,
      needed: needed || (hasValue && name === known.main),
      fallback: value,
    }
  })
  if (!hasValue || known.main !== undefined) return settings
  return [...settings, { name: annotationValue, main: true, form: /^/, example: 'a text', needed: true }]
}

function buildVariables(
  { environment = {} }: InjectorSpec,
  known: PresetInjection,
  settings: readonly PodSetting[],
  problem: Problem,
): PodVariable[] {
  const names = [...workloadAttributes, 'token_file', ...settings.map(({ name }) => name)]
  const variables: PodVariable[] = []
  const add = (name: string, text: string, identity: boolean): void => {
    variables.push({ name, text: template(text, names, ['environment', name], problem), identity })
  }
  for (const [name, text] of Object.entries(known.identity)) add(name, text, true)
  const entries = Object.entries(environment)
  if (entries.length > mostVariables) problem(['environment'], `has more than ${mostVariables} variables`)
  for (const [name, text] of entries) {
    if (!variableName.test(name)) problem(['environment', name], `"${name}" is not a name of an environment variable`)
    const own = Object.hasOwn(known.identity, name) || known.file?.variable === name
    if (own) problem(['environment', name], 'the preset sets this variable; use "settings" or an annotation')
    else add(name, text, false)
  }
  for (const [name, text] of Object.entries(known.other)) if (!Object.hasOwn(environment, name)) add(name, text, false)
  return variables
}

function template(text: string, names: readonly string[], place: Path, problem: Problem): Template {
  const parsed = parseTemplate(text, { keys: false, attributes: true })
  for (const name of parsed.attributes) {
    if (!names.includes(name))
      problem(place, `there is no "${name}"${suggestion(name, names)}; there are ${names.join(', ')}`)
  }
  return parsed
}
