import type { Subject } from '#identity/subject.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Closable } from '#kernel/scope.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http.ts'
import type { ParameterTable } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'

/** What a mechanism found out. It never writes to the socket. */
export type AuthOutcome =
  /** The caller is this; level and chain are the chain's. */
  | { readonly kind: 'authenticated'; readonly subject: Pick<Subject, 'dn' | 'otherNames' | 'uid' | 'attributes'> }
  /** Nothing to say about who it is, and no objection. */
  | { readonly kind: 'passed' }
  /** The mechanism delegates to another chain's mechanisms. */
  | { readonly kind: 'include'; readonly chain: string }
  /** Refused. `reason` is for the log; the headers, such as WWW-Authenticate, go with the 401. */
  | {
      readonly kind: 'rejected'
      readonly reason: string
      readonly headers?: Readonly<Record<string, string>>
      /** 403 where the caller is known but may not pass. */
      readonly status?: 401 | 403
      /** Nothing was sent that could have been accepted. */
      readonly noCredential?: true
    }

export interface AuthAttempt {
  readonly request: GatewayRequest
  /** What earlier mechanisms of the chain established. */
  readonly subject: Subject | undefined
  /** The chain's root, or the directory's. */
  readonly root: string
}

/** One mechanism in one chain. Throws only for failures of its own (TARGET_UNREACHABLE), never for a bad credential. */
export interface AuthMechanism extends Closable {
  begin(attempt: AuthAttempt): Promise<AuthOutcome>
  /** Answers CORS preflight requests; undefined for anything else. */
  preflight?(request: GatewayRequest): GatewayResponse | undefined
  /** Headers for every answer of a URL protected by this mechanism. */
  responseHeaders?(request: GatewayRequest): Readonly<Record<string, string>>
}

export interface PreparedMechanism {
  readonly className: string
  /** Chains it includes, for the check that none includes itself. */
  readonly includes: readonly string[]
  create(host: ModuleHost): Promise<AuthMechanism>
}

export interface AuthMechanismModule {
  readonly className: string
  readonly aliases: readonly string[]
  /** Parameters of the chain's entry. */
  readonly parameters: ParameterTable
  /** Parameters of the AuthenticationMechanism object's `init`. */
  readonly initParameters: ParameterTable
  /** `params` are the chain entry's, `init` the mechanism object's. */
  prepare(params: Params, init: Params, issues: Issues, context: ParseContext): PreparedMechanism
}

export interface AuthMechanismDefinition<C> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: ParameterTable
  readonly initParameters?: ParameterTable
  /** Pure: no I/O, no clock. Unknown `init` parameters are reported by the caller. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  create(config: C, host: ModuleHost): AuthMechanism | Promise<AuthMechanism>
  includes?(config: C): readonly string[]
}

export function defineAuthMechanism<C>(definition: AuthMechanismDefinition<C>): AuthMechanismModule {
  const { className, parameters } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    initParameters: definition.initParameters ?? {},
    prepare: (params, _init, issues, context) => {
      const config = definition.parse(params, issues, context)
      return {
        className,
        includes: definition.includes?.(config) ?? [],
        create: async (host) => definition.create(config, host),
      }
    },
  }
}
