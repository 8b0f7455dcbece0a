import { parseComposite } from '#identity/mapping/composite.ts'
import {
  JsonDocument,
  type MappedValue,
  type MappingSource,
  userIdName,
  valuesOf,
} from '#identity/mapping/mapped-value.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { JsonValue } from '#kernel/json.ts'
import { buildScoped, type Closable } from '#kernel/scope.ts'
import type { AttributePlace, AttributeSources } from '#sdk/flow/flow.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { MapperInstance } from '#sdk/target/mapper.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** What a rule of a mapping can take the value from. */
export const sourceTypes = ['user', 'static', 'composite', 'custom'] as const
/** One of `sourceTypes`. */
export type SourceType = (typeof sourceTypes)[number]

/** One rule as written: the source of the attribute's value. */
export interface MappingRule {
  readonly attribute: string
  readonly sourceType: SourceType
  /** An attribute name, a constant, a template, or a mapper expression, by the source type. */
  readonly source: string
  /** The place of the source text. */
  readonly path: Path
}

/** A parsed list of mapping rules: the attributes it reads and produces, and how to create it. */
export interface PreparedMapping {
  readonly produces: readonly AttributePlace[]
  readonly reads: readonly (AttributePlace & Pick<MapperInstance, 'parts'>)[]
  /** A custom mapper may read anything. */
  readonly opaque: boolean
  /**
   * The attributes from which `TREMOLO_USER_ID`, the login, is made; undefined if a mapper may read any attribute
   * for it.
   */
  readonly loginReads: readonly string[] | undefined
  /** The sources of each attribute. */
  readonly sources: AttributeSources
  /** The attributes that are copies of one other, by their names in lower case; `TREMOLO_USER_ID` is the login. */
  readonly copies: ReadonlyMap<string, string>
  create(host: LookupHost): Promise<Mapping>
}

/** A mapping that is ready to be applied. */
export interface Mapping extends Closable {
  /** In the order of the rules; attributes without a value are left out. */
  apply(source: MappingSource): Promise<ReadonlyMap<string, MappedValue>>
  /** The attributes that may be made from any of these, including those of a mapper that may read any attribute. */
  dependents(attributes: readonly string[]): readonly string[]
}

type Evaluate = (source: MappingSource) => MappedValue | Promise<MappedValue>

interface PreparedRule {
  /** Undefined if that is unknown. */
  readonly reads: readonly string[] | undefined
  readonly parts?: readonly string[]
  create(host: LookupHost): Promise<{ readonly evaluate: Evaluate; readonly mapper?: Closable }>
}

/**
 * Parses the rules once, so that applying them costs no parsing. `TREMOLO_USER_ID` as a source is the login. An
 * invalid rule is reported and left out; of two rules for one attribute the last counts.
 */
export function prepareMapping(rules: readonly MappingRule[], issues: Issues, context: ParseContext): PreparedMapping {
  const last = new Map(rules.map((rule) => [rule.attribute.toLowerCase(), rule]))
  const prepared = rules.flatMap((rule) => {
    if (last.get(rule.attribute.toLowerCase()) !== rule) {
      issues.warning(rule.path, `"${rule.attribute}" is mapped again further on, and only the last rule counts`)
      return []
    }
    const made = prepareRule(rule, issues, context)
    return made === undefined ? [] : [{ rule, made }]
  })
  const steps = prepared.map(({ rule, made }) => ({ attribute: rule.attribute, ...made }))
  return {
    produces: [...last.values()].map(({ attribute, path }) => ({ attribute, path })),
    reads: prepared.flatMap(({ rule, made }) =>
      (made.reads ?? [])
        .filter((name) => name !== userIdName)
        .map((attribute) => ({ attribute, path: rule.path, ...(made.parts && { parts: made.parts }) })),
    ),
    opaque: prepared.some(({ made }) => made.reads === undefined),
    loginReads: loginReads(prepared.find(({ rule }) => rule.attribute === userIdName)?.made),
    sources: new Map(
      prepared.map(({ rule, made }) => [
        rule.attribute.toLowerCase(),
        made.reads?.filter((name) => name !== userIdName) ?? 'any',
      ]),
    ),
    copies: new Map(
      prepared.flatMap(({ rule: { attribute, source, sourceType } }) =>
        sourceType === 'user' ? [[attribute.toLowerCase(), source] as const] : [],
      ),
    ),
    create: (host) => createMapping(steps, host),
  }
}

const loginReads = (login: PreparedRule | undefined): readonly string[] | undefined =>
  login === undefined ? [] : login.reads?.filter((name) => name !== userIdName)

function prepareRule(rule: MappingRule, issues: Issues, context: ParseContext): PreparedRule | undefined {
  const { attribute, source: text, sourceType, path } = rule
  switch (sourceType) {
    case 'static': {
      const values = text === '' ? [] : [text]
      return pure([], () => values)
    }
    case 'user':
      if (text !== '') return pure([text], copyOf(text))
      issues.error(path, `the source of "${attribute}" must name an attribute`)
      return undefined
    case 'composite':
      try {
        const composite = parseComposite(text)
        return pure(composite.attributes, composite.evaluate)
      } catch (error) {
        issues.error(path, error instanceof Error ? error.message : String(error))
        return undefined
      }
    case 'custom': {
      const instance = context.mapper(text, path, issues)
      if (instance === undefined) return undefined
      return {
        reads: instance.reads,
        ...(instance.parts && { parts: instance.parts }),
        create: async (host) => {
          const mapper = await instance.create(host)
          return { evaluate: (source) => mapper.map(source, attribute), mapper }
        },
      }
    }
  }
}

const pure = (reads: readonly string[], evaluate: Evaluate): PreparedRule => ({
  reads,
  create: async () => ({ evaluate }),
})

/** A complex value of the source is passed on unchanged. */
const copyOf =
  (name: string): Evaluate =>
  (source) => {
    const json = name === userIdName ? undefined : source.json?.(name)
    return json !== undefined && isComplex(json) ? new JsonDocument(json) : valuesOf(source, name)
  }

const isComplex = (value: JsonValue): boolean =>
  typeof value === 'object' && value !== null && (!Array.isArray(value) || value.some((item) => isComplex(item)))

async function createMapping(
  rules: readonly (PreparedRule & { readonly attribute: string })[],
  host: LookupHost,
): Promise<Mapping> {
  const { value: steps, scope } = await buildScoped(async (opened) => {
    const made: { attribute: string; evaluate: Evaluate }[] = []
    for (const { attribute, create } of rules) {
      const { evaluate, mapper } = await create(host)
      if (mapper !== undefined) opened.own(mapper)
      made.push({ attribute, evaluate })
    }
    return made
  })
  return {
    apply: async (source) => {
      const started = steps.map(({ evaluate }) => attempt(evaluate, source))
      const values = started.every(isSettled) ? started : await Promise.all(started)
      const result = new Map<string, MappedValue>()
      for (const [i, { attribute }] of steps.entries()) {
        const value = values[i]
        if (value !== undefined && (value instanceof JsonDocument || value.length > 0)) result.set(attribute, value)
      }
      return result
    },
    dependents: (attributes) => {
      const changed = new Set(attributes.map((name) => name.toLowerCase()))
      const depends = ({ reads }: PreparedRule): boolean =>
        reads === undefined || reads.some((name) => changed.has(name.toLowerCase()))
      return attributes.length === 0 ? [] : rules.filter(depends).map(({ attribute }) => attribute)
    },
    close: () => scope.close(),
  }
}

/** A failure becomes a rejection, so that running mappers are waited for with it. */
function attempt(evaluate: Evaluate, source: MappingSource): MappedValue | Promise<MappedValue> {
  try {
    return evaluate(source)
  } catch (error) {
    return Promise.reject(error)
  }
}

const isSettled = (value: MappedValue | Promise<MappedValue>): value is MappedValue =>
  Array.isArray(value) || value instanceof JsonDocument
