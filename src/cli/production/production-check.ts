import type { Catalog } from '#config/configuration/catalog.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import { pathText } from '#config/context/located-issue.ts'
import { readParams } from '#config/context/params.ts'
import type { LoadedObject } from '#config/load/load.ts'
import { Issues, type Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Params } from '#sdk/module/params.ts'
import type { TlsFiles } from '#server/listener-certificate.ts'

/** How the gateway will be started, as far as a check needs it; the names are those of the options of `serve`. */
export interface ServeSettings {
  readonly listen: string
  /** Undefined: no operators' listener. */
  readonly metrics: string | undefined
  readonly tls: TlsFiles | undefined
  readonly trustedProxies: readonly string[]
  readonly data: string
  /** Folders whose content a restart may remove. */
  readonly temporary: readonly string[]
  readonly databaseUrl: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
}

export interface ProductionSetup {
  readonly configuration: Configuration
  readonly objects: ConfiguredObjects
  readonly settings: ServeSettings
}

/** Something that is not ready for production. */
export interface Finding {
  readonly level: 'fail' | 'warn'
  /** `file:line:col: path`, the name of an option, or a path of what is not ready. */
  readonly at: string
  readonly message: string
  /** What to do about it; that of the check if absent. */
  readonly remedy?: string | undefined
}

export interface ProductionCheck {
  readonly id: string
  /** The heading of its section in docs/guides/hardening.md. */
  readonly title: string
  /** What to do about findings that don't say it; one sentence. */
  readonly remedy: string
  /** Empty if everything is valid. */
  find(setup: ProductionSetup): readonly Finding[]
  /** Printed after the title if nothing was found. */
  note?(setup: ProductionSetup): string | undefined
}

/** A module in the configuration: its class by our own name, its parameters, and their place. */
interface ConfiguredModule {
  readonly className: string
  readonly params: Params
  /** The place of a parameter, or of the module if it has none of that name. */
  at(parameter?: string): string
}

export interface ConfiguredFilter extends ConfiguredModule {
  readonly application: string
  /** Undefined if the URL needs no login. */
  readonly chain: string | undefined
}

/** A link of a chain. */
interface ConfiguredLink extends ConfiguredModule {
  readonly chain: string
  /** Of the mechanism. */
  readonly name: string
}

/** The content of the objects, with places that a person can open. */
export class ConfiguredObjects {
  readonly #objects: readonly LoadedObject[]
  readonly #catalog: Catalog

  constructor(objects: readonly LoadedObject[], catalog: Catalog) {
    this.#objects = objects
    this.#catalog = catalog
  }

  /** The place of one value of an object. */
  placeOf(kind: string, name: string, path: Path): string {
    const object = this.#objects.find((one) => one.kind === kind && one.name === name)
    return object === undefined ? name : `${object.document.at(path)}: ${pathText(path)}`
  }

  has(...kindNames: readonly string[]): boolean {
    return this.#objects.some(({ kind }) => kindNames.includes(kind))
  }

  filters(): ConfiguredFilter[] {
    return this.#of('Application').flatMap((object) =>
      listAt(object, ['spec', 'urls']).flatMap((url, i) => {
        const chain = textAt(url, ['authChain'])
        return listAt({ value: url }, ['filterChain']).flatMap((filter, j) => {
          const path = ['spec', 'urls', i, 'filterChain', j]
          const module = this.#module(object, filter, path, this.#catalog.filters)
          return module === undefined ? [] : [{ ...module, application: object.name ?? '', chain: chain || undefined }]
        })
      }),
    )
  }

  inserts(): ConfiguredModule[] {
    return this.#of('DirectoryInsert').flatMap(
      (object) => this.#module(object, at(object.value, ['spec']), ['spec'], this.#catalog.directoryInserts) ?? [],
    )
  }

  /** The copies of the audit, and of its anchors. */
  auditCopies(): ConfiguredModule[] {
    return [...this.#of('AuditSink'), ...this.#of('AuditAnchor')].flatMap(
      (object) => this.#module(object, at(object.value, ['spec']), ['spec'], this.#catalog.auditSinks) ?? [],
    )
  }

  /** The links of all chains. */
  mechanisms(): ConfiguredLink[] {
    const classes = new Map(
      this.#of('AuthenticationMechanism').map(({ name, value }) => [name, textAt(value, ['spec', 'className'])]),
    )
    return this.#of('AuthenticationChain').flatMap((object) =>
      listAt(object, ['spec', 'authMechs']).flatMap((link, i) => {
        const name = textAt(link, ['name'])
        const value = { ...asObject(link), className: classes.get(name) }
        const module = this.#module(object, value, ['spec', 'authMechs', i], this.#catalog.authMechanisms)
        return module === undefined ? [] : [{ ...module, name, chain: object.name ?? '' }]
      }),
    )
  }

  #of(kind: string): LoadedObject[] {
    return this.#objects.filter((object) => object.kind === kind)
  }

  #module(
    { document }: LoadedObject,
    value: unknown,
    path: Path,
    registry: { find(name: string): { readonly className: string } | undefined },
  ): ConfiguredModule | undefined {
    const className = registry.find(textAt(value, ['className']))?.className
    if (className === undefined) return undefined
    const params = readParams(at(value, ['params']), [...path, 'params'], new Issues(), document)
    const names = new Set(params.names())
    const place = (parameter?: string): Path =>
      parameter === undefined || !names.has(parameter) ? path : params.pathOf(parameter, 0)
    return {
      className,
      params,
      at: (parameter) => `${document.at(place(parameter))}: ${pathText(place(parameter))}`,
    }
  }
}

const asObject = (value: unknown): Readonly<Record<string, unknown>> => (isJsonObject(value) ? value : {})

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, step) => asObject(inner)[step], value)
}

const textAt = (value: unknown, path: readonly string[]): string => {
  const found = at(value, path)
  return typeof found === 'string' ? found : ''
}

const listAt = ({ value }: { readonly value: unknown }, path: readonly string[]): readonly unknown[] => {
  const found = at(value, path)
  return Array.isArray(found) ? found : []
}
