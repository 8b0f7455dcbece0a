import type * as z from 'zod'
import type { Catalog } from '#config/configuration/catalog.ts'
import type { Placed } from '#config/configuration/configuration.ts'
import type { AzRulesSpec, SecretParamsSpec } from '#config/kinds/envelope.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Named, Registry } from '#kernel/registry.ts'
import { type OwnPlaces, ownFile } from '#sdk/host/own-file.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext, ReferenceKind, ShownValue } from '#sdk/module/parse-context.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import { parseRule, type Rule } from '#sdk/rule/rule.ts'
import type { GroupSource } from '#sdk/target/group-mappings.ts'
import type { MapperInstance, PreparedValueSource } from '#sdk/target/mapper.ts'
import type { ConfigDocument } from './config-document.ts'
import type { Draft, Reference } from './draft.ts'
import type { HiddenValues } from './hidden-values.ts'
import { addSecretParams, readParams } from './params.ts'
import { readRepaired } from './schema-issues.ts'
import type { NamedFiles, SecretSource } from './secrets.ts'
import { unknownClass } from './unknown-class.ts'

/** What all objects of one load share. */
export interface LoadState {
  readonly catalog: Catalog
  readonly folder: string
  readonly secrets: SecretSource
  readonly hidden: HiddenValues
  readonly files: NamedFiles
  readonly ownPlaces?: OwnPlaces | undefined
  /** A missing secret is an error; otherwise a warning. */
  readonly strictSecrets: boolean
  readonly issues: Issues
  readonly references: Reference[]
  /** What each script uses and isn't served; undefined for one that isn't JavaScript. */
  readonly scripts: (readonly string[] | undefined)[]
  readonly draft: Draft
  /** The chain of the URL that serves this path; undefined if there is none. */
  chainAt(address: string): string | undefined
  /** See ParseContext. */
  shownValue(name: string): ShownValue
  /** Suppresses later issues at this place or below: their cause is already reported. */
  ignoreLater(document: ConfigDocument, path: Path): void
}

/** The context in which one object is built. Paths are those of the object's document. */
export class BuildContext implements ParseContext {
  readonly state: LoadState
  readonly document: ConfigDocument
  readonly issues: Issues
  readonly placed: Placed
  readonly readFile: (file: string, encoding?: 'utf8' | 'base64') => string

  constructor(state: LoadState, document: ConfigDocument, name: string, namespace: string | undefined) {
    this.state = state
    this.document = document
    this.issues = state.issues.for(document)
    this.readFile = (file, encoding) => state.files.read(file, encoding)
    this.placed = { name, namespace, at: document.at(['metadata', 'name']) }
  }

  get folder(): string {
    return this.state.folder
  }

  ownFile(path: string): string | undefined {
    const { ownPlaces } = this.state
    return ownPlaces && ownFile(path, ownPlaces)
  }

  at(path: Path): string {
    return this.document.at(path)
  }

  chainAt(address: string): string | undefined {
    return this.state.chainAt(address)
  }

  shownValue(name: string): ShownValue {
    return this.state.shownValue(name)
  }

  initOf(className: string): Params | undefined {
    const found = Array.from(this.state.draft.mechanisms.values()).find((one) => one?.module.className === className)
    return found?.init
  }

  resourceType(name: string): ResourceType | undefined {
    return this.state.draft.resourceTypes.get(name)?.config
  }

  addGroupSource(source: GroupSource): void {
    this.state.draft.groupSources.push({ config: source, document: this.document })
  }

  addGroupName(name: string, path: Path): void {
    this.state.draft.groupNames.push({ config: name, path, document: this.document })
  }

  refer(kind: ReferenceKind, name: string, path: Path, absent: 'error' | 'warning' = 'error'): void {
    this.state.references.push({ kind, name, path, document: this.document, absent })
  }

  countScript(unserved: readonly string[] | undefined): void {
    this.state.scripts.push(unserved)
  }

  mapper(expression: string, path: Path, issues: Issues): MapperInstance | undefined {
    const bar = expression.indexOf('|')
    const className = (bar < 0 ? expression : expression.slice(0, bar)).trim()
    const parameters = bar < 0 ? [] : expression.slice(bar + 1).split(',')
    const { mappers } = this.state.catalog
    const module = mappers.find(className)
    if (module === undefined) {
      issues.error(path, unknownClass(mappers, className))
      return undefined
    }
    return module.prepare(parameters, path, issues, this)
  }

  valueSource(className: string, params: Params, path: Path, issues: Issues): PreparedValueSource | undefined {
    const { valueSources } = this.state.catalog
    const module = valueSources.find(className)
    if (module === undefined) issues.error(path, unknownClass(valueSources, className))
    return module?.prepare(params, issues, this)
  }

  /** The module of that name; undefined, with an issue filed, if there is none. */
  module<D extends Named>(registry: Registry<D>, className: string, path: Path): D | undefined {
    const module = registry.find(className)
    if (module === undefined) this.issues.error(path, unknownClass(registry, className))
    return module
  }

  params(value: unknown, path: Path, secretParams?: SecretParamsSpec, secretPath: Path = []): Params {
    const params = readParams(value, path, this.issues, this.document)
    const { secrets, strictSecrets, hidden } = this.state
    const tolerate = strictSecrets ? undefined : (at: Path) => this.state.ignoreLater(this.document, at)
    addSecretParams(params, secretParams, secretPath, secrets, this.issues, tolerate)
    for (const [i, { name, secretName, secretKey }] of (secretParams ?? []).entries()) {
      const [secret] = params.isSecret(name) ? params.values(name) : []
      if (secret === undefined || !secrets.used.has(`${secretName}/${secretKey}`)) continue
      hidden.at(this.document, [...secretPath, i], secret, secrets.shownName(secretName, secretKey))
    }
    return params
  }

  rules(spec: AzRulesSpec | undefined, path: Path): Rule[] {
    return (spec ?? []).flatMap(({ scope, constraint }, i) => {
      const rule = parseRule(scope, constraint, [...path, i, 'constraint'], this.issues, this)
      return rule === undefined ? [] : [rule]
    })
  }

  /** Reads one part of the document by its schema; undefined, with issues filed, if it is unusable. */
  part<T>(schema: z.ZodType<T>, value: unknown, path: Path): T | undefined {
    const read = readRepaired(schema, value, path, this.issues)
    for (const place of read.repaired) this.state.ignoreLater(this.document, place)
    return read.value
  }

  /** A name of another object; an empty text names none. */
  optional(kind: ReferenceKind, name: string | undefined, path: Path): string | undefined {
    if (name === undefined || name === '') return undefined
    this.refer(kind, name, path)
    return name
  }
}
