import type { Directory } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Issues } from '#kernel/issues.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Closable } from '#kernel/scope.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import type { LoginGuard, LoginStep } from '#sdk/auth/login.ts'
import type { SessionAccess, SessionContribution, SessionHandle } from '#sdk/auth/session.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import type { ModuleDefinition, ModuleOf } from '#sdk/module/module.ts'
import type { ParameterTable } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import type { TargetSource } from '#sdk/target/target.ts'
import type { WorkflowStarter } from '#sdk/workflow/workflow.ts'

/** The result of a mechanism. It never writes to the socket. */
export type AuthOutcome =
  /** The caller is this subject; the chain sets level and chain. */
  | {
      readonly kind: 'authenticated'
      readonly subject: Pick<Subject, 'dn' | 'otherNames' | 'identity' | 'uid' | 'attributes' | 'link'>
      /** Stored in the session, if the chain leads to one. */
      readonly session?: SessionContribution | undefined
    }
  /** The mechanism establishes no one, and has no objection. */
  | { readonly kind: 'passed'; readonly session?: SessionContribution | undefined }
  /**
   * The user has to act first: fill in a form, log in elsewhere. The login is stored with the mechanism's state
   * (unchanged if absent), and `proceed` gets the login's requests to the mechanism's URI. Only if the attempt has
   * a `login`; a request that is not a navigation gets a 401 instead of the response.
   */
  | { readonly kind: 'challenge'; readonly response: GatewayResponse; readonly state?: JsonObject }
  /** The mechanism delegates to another chain's mechanisms. */
  | {
      readonly kind: 'include'
      readonly chain: string /** A Set-Cookie header for the answer. */
      readonly cookie?: string
    }
  /** Refused. `reason` is for the log; the headers, such as WWW-Authenticate, are sent with the 401. */
  | {
      readonly kind: 'rejected'
      readonly reason: string
      readonly headers?: Readonly<Record<string, string>>
      /** 403 if the caller is known but may not pass. */
      readonly status?: 401 | 403
      /** The request had no credential that could have been accepted. */
      readonly noCredential?: true
    }

/** A request whose caller the mechanism authenticates. */
export interface AuthAttempt {
  readonly request: GatewayRequest
  /** What earlier mechanisms of the chain established. */
  readonly subject: Subject | undefined
  /** The chain's root, or the directory's. */
  readonly root: string
  /** Set if the caller is a browser: only then may the outcome be a challenge. */
  readonly login?: LoginStep
  /** The public id of the session that the chain will lead to; absent if the application keeps none. */
  readonly sessionId?: string
  /** Counts tries of a password in the request, by the limits of the chain; absent where none can be tried. */
  readonly guard?: LoginGuard
}

/** A request to the mechanism's URI, or below it, of a login that waits for this mechanism. */
export interface LoginAttempt extends AuthAttempt {
  readonly login: LoginStep
  readonly sessionId: string
  /** Counts tries, by the limits of the chain. */
  readonly guard: LoginGuard
  /** The state from the latest challenge. */
  readonly state: JsonObject
  /** What follows the mechanism's URI: empty, or starting with a slash. */
  readonly pathInfo: string
}

/** One mechanism in one chain. Throws only for its own failures (TARGET_UNREACHABLE), never for a bad credential. */
export interface AuthMechanism extends Closable {
  begin(attempt: AuthAttempt): Awaitable<AuthOutcome>
  /**
   * Continues a login after a challenge. An outcome counts once: of two requests for the same step, the later one
   * is refused.
   */
  proceed?(attempt: LoginAttempt): Promise<AuthOutcome>
  /**
   * Answers requests to its URI, or below it, that belong to no login, such as a logout by an external issuer or a
   * page's script; undefined if it has no response.
   */
  serve?(request: GatewayRequest, pathInfo: string): Promise<GatewayResponse | undefined>
  /**
   * Called instead of `begin`, without the user, for a user whom it accepted or changed before, when their entry
   * was read again. Rejected: their session ends.
   */
  renew?(subject: Subject): Promise<AuthOutcome>
  /** Where the browser goes after its user ended a session of its chain; undefined to leave that to others. */
  afterLogout?(session: SessionHandle, request: GatewayRequest): Promise<string | undefined>
  /** Answers CORS preflight requests; undefined for anything else. */
  preflight?(request: GatewayRequest): GatewayResponse | undefined
  /** Headers for every response of a URL protected by this mechanism. */
  responseHeaders?(request: GatewayRequest): Readonly<Record<string, string>>
}

/** The callers that a mechanism accepts, as far as its configuration shows; with an issuer, its users. */
export type CallerKind = 'people' | 'programs' | { readonly issuer: string }

/** What a mechanism may use of Gatehouse to authenticate the caller. */
export interface AuthHost extends ModuleHost {
  readonly targets: TargetSource
  /** The virtual directory. */
  readonly directory: Directory
  readonly keys: KeySource
  readonly sessions: SessionAccess
  readonly workflows: WorkflowStarter
  /** Where a task of the workflow reads its user again; undefined if none names a part of the directory. */
  reloadRoot?(workflow: string): Dn | undefined
  /** One passing rule is enough; no rule denies. */
  authorize(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision>
  /** Opens users and groups in Gatehouse's own database, or in another one. The caller closes it. */
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
  /** Texts of the configuration in other languages; absent if there are none. */
  readonly texts?: ConfiguredTexts | undefined
  /** Whether this gateway issues tokens with this `iss`. No if absent. */
  ownsIssuer?(issuer: string): boolean
  /** Reports to operators whether an outside issuer answers: call the result after each load, with the reason if it failed. */
  watchIssuer?(issuer: string): (problem?: string) => void
}

/** A mechanism of a chain whose parameters are checked. */
export interface PreparedMechanism {
  readonly className: string
  /** Chains it includes, for the check that none includes itself. */
  readonly includes: readonly string[]
  /** It may ask the user for input; such a chain needs an application that keeps sessions. */
  readonly interactive: boolean
  /** Undefined if the configuration doesn't show it. */
  readonly callers?: CallerKind | undefined
  /** The clients whose tokens it accepts, by the `uid` of the caller, as far as its configuration names them. */
  readonly clients?: readonly string[] | undefined
  create(host: AuthHost): Promise<AuthMechanism>
}

/** A kind of mechanism, as the catalog lists it. */
export interface AuthMechanismModule extends Omit<ModuleOf<PreparedMechanism>, 'prepare'> {
  /** Parameters of the AuthenticationMechanism object's `init`. */
  readonly initParameters: ParameterTable
  /** `params` are the chain entry's, `init` the mechanism object's. */
  prepare(params: Params, init: Params, issues: Issues, context: ParseContext): PreparedMechanism
}

/** `H` is the host of the mechanism's feature; the gateway's own host has the members of all of them. */
interface AuthMechanismDefinition<C, H extends AuthHost>
  extends Omit<ModuleDefinition<C, AuthMechanism, H>, 'lookups' | 'parse'> {
  /** Pure: no I/O, no clock. Problems of `init` are reported where the mechanism is defined, not here. */
  parse(params: Params, issues: Issues, context: ParseContext, init: Params): C
  /** The caller of `parse` reports unknown ones. */
  readonly initParameters?: ParameterTable
  includes?(config: C): readonly string[]
  /** See PreparedMechanism. */
  readonly interactive?: boolean
  /** See PreparedMechanism; users if it is interactive. */
  callers?(config: C): CallerKind
  /** See PreparedMechanism. */
  clients?(config: C): readonly string[]
}

/** Describes a kind of mechanism. */
export function defineAuthMechanism<C, H extends AuthHost = AuthHost>(
  definition: AuthMechanismDefinition<C, H>,
): AuthMechanismModule {
  const { className, parameters } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    initParameters: definition.initParameters ?? {},
    prepare: (params, init, issues, context) => {
      const config = definition.parse(params, issues, context, init)
      return {
        className,
        includes: definition.includes?.(config) ?? [],
        interactive: definition.interactive ?? false,
        clients: definition.clients?.(config),
        callers: definition.callers?.(config) ?? (definition.interactive === true ? 'people' : undefined),
        create: async (host: H) => definition.create(config, host),
      }
    },
  }
}
