import { writeFileSync } from 'node:fs'
import { differencesTable, writeMigrationPage } from './specification-differences.ts'

/** A test by its file and the title in its source. A golden file of `gatehouse check` has none. */
export interface Proof {
  readonly file: string
  readonly title?: string
}

/** One statement of the specification in our own words, and its proof. */
export interface Statement {
  readonly section: string
  readonly statement: string
  readonly proof: Proof
  /** Our interpretation, if the statement leaves it open. */
  readonly note?: string
}

export const sections: readonly (readonly [number: string, title: string])[] = [
  ['1', 'What the service does'],
  ['2.1', 'Registration API resources'],
  ['2.2', 'SCIM user resource'],
  ['2.3', 'SCIM PATCH request'],
  ['2.4', 'Call-workflow request'],
  ['2.5', 'SCIM gateway configuration'],
  ['2.6', 'Token service resources'],
  ['4.1', 'Registration API'],
  ['4.2', 'SCIM gateway'],
  ['4.3', 'Call-workflow API'],
  ['4.4', 'Token service'],
  ['5', 'Authentication'],
  ['7', 'Errors'],
  ['8', 'Limits'],
  ['9', 'Versioning'],
]

const by = (file: string, title?: string): Proof => ({ file, ...(title === undefined ? {} : { title }) })

const form = by('test/stories/registration.test.ts', 'each endpoint answers with the fields of the specification')
const fields = by(
  'src/modules/shared/forms/form-values.test.ts',
  'a field is a text, a text-area, a text-list or a list, and nothing else',
)
const register = (title: string): Proof => by('src/modules/filters/register/register.test.ts', title)
const described = (title: string): Proof => by('test/api-description.test.ts', title)
const tutorial = (title: string): Proof => by('test/stories/predecessor-tutorial/tutorial.test.ts', title)
const gateway = (title: string): Proof => by('src/modules/filters/scim-gateway/specification.test.ts', title)
const call = (title: string): Proof => by('src/modules/filters/call-workflow/call-workflow.test.ts', title)
const calls = (title: string): Proof => by('test/stories/call-workflow.test.ts', title)
const tokens = (title: string): Proof => by('test/stories/specification-token-service.test.ts', title)
const pipeline = (title: string): Proof => by('src/engine/pipeline/pipeline.test.ts', title)
const account = (title: string): Proof =>
  by('src/modules/auth-mechanisms/oauth2-k8s-service-account/oauth2-k8s-service-account.test.ts', title)
const jwt = (title: string): Proof => by('src/modules/auth-mechanisms/oauth2-jwt/oauth2-jwt.test.ts', title)
const names = by('test/config-errors/specification-names.txt')

const read = tutorial('one: a user is read')
const created = tutorial('two: the workflow creates a user, with the attributes that it provisions')
const joined = tutorial('three: the user joins a group, and nothing else changes')
const patched = tutorial('a PATCH of the user changes attributes, and no memberships')
const left = tutorial('the user leaves the group by the same workflow, and keeps all attributes')
const deleted = tutorial('five: the user is deleted; deleting again is 404')
const workflows = gateway(
  'workflowName, deleteUserWorkflowName, groupWorkflow and groupDeleteWorkflow name the workflows',
)
const mapped = gateway('scim2tremolo and tremolo2scim map by attribute, by mapper and by template')
const filters = gateway('userFilterScim2Ldap and groupFilterScim2Ldap name the attributes that filters are about')
const groups = gateway(
  'groups are known by groupIdName, shown by groupDisplayName, with the members of groupMemberAttributeName',
)
const wholeCall = call('a call with all members runs the workflow for the subject that the named attribute contains')
const documentedCall = calls('the documented call works as written, token included')
const endpoint = tokens('an endpoint has a path, an audience, an issuer host and a key pair')
const tokenRules = tokens('rules over namespace, saname and cluster decide who gets a token')
const discovery = tokens('the discovery document has the fields of the specification')
const published = tokens('the documents are published below the issuer')
const injected = tokens('the injector gives labelled pods the variables, the annotation and the trusted certificates')
const minute = by(
  'test/stories/own-issuer.test.ts',
  'the documented way to call a workflow: a token of one minute, and another after logging out and in',
)

/** Each as `statement`, or `[statement, note]`. */
const of = (
  section: string,
  proof: Proof,
  ...statements: readonly (string | readonly [statement: string, note: string])[]
): Statement[] =>
  statements.map((one) =>
    typeof one === 'string' ? { section, statement: one, proof } : { section, statement: one[0], proof, note: one[1] },
  )

export const statements: readonly Statement[] = [
  ...of('1', form, 'The Registration API returns the configuration of a form'),
  ...of('1', register('returns one field, and all of them'), 'It returns the allowed values of list attributes'),
  ...of('1', register('reports every problem at once, and starts nothing'), 'It validates a submitted registration'),
  ...of('1', register('starts the workflow with the fields of the form'), 'A valid registration starts a workflow'),
  ...of('1', workflows, 'The SCIM gateway turns each SCIM call into a call of a named workflow'),
  ...of('1', created, 'A custom target of the user talks to the application'),
  ...of('1', documentedCall, 'The call-workflow API starts a named workflow directly'),
  ...of('1', endpoint, 'The token service issues a JWT for one remote service to a workload with a bound token'),
  ...of('1', tokenRules, 'It authorizes the workload by rules'),
  ...of('1', published, 'Remote services validate the token by a discovery document and a key document'),
  ...of(
    '1',
    by('test/stories/api-documents.test.ts', 'match every answer of the Main API'),
    'The portal has a Main API: badges, access requests, reports',
  ),
  ...of(
    '1',
    by('test/stories/api-documents.test.ts', 'are served by the Token API, and match its answers'),
    'The portal has a Token API that shows the id_token to the user',
  ),
  ...of(
    '1',
    by(
      'src/engine/pipeline/cookie-session.test.ts',
      'is valid for the applications that share its cookie, and for no other',
    ),
    'Each API may have a session context of its own',
  ),
  ...of(
    '1',
    by('test/stories/two-gateways.test.ts', 'each gateway has its own rules'),
    'Each API may have an authentication chain and rules of its own',
  ),

  ...of(
    '2.1',
    form,
    'Config: `frontPage` is an object',
    'Config: `frontPage.title`',
    'Config: `frontPage.text`',
    'Config: `homeURL`',
    'Config: `logoutURL`',
    'Config: `attributes` is a list of Attribute',
    'Config: `attributeNameList` names the attributes',
    'Config: `requireReason` is a boolean',
    'Config: `preSetPassword` is a boolean',
    'Config: `requireReCaptcha` is a boolean',
    'Config: `requireTermsAndConditions` is a boolean',
    'Config: `reasonIsList` is a boolean',
    'Config: `reasons` is a list of texts',
    'Config: `submitButtonText`',
    'Config: `submittedText`',
    'Attribute: `name`',
    'Attribute: `displayName`',
    'Attribute: `readOnly` is a boolean',
    'Attribute: `required` is a boolean',
    'Attribute: `regEx`',
    'Attribute: `unique` is a boolean',
    'Attribute: `values` is a list of AttributeValueListItem',
    'Attribute: `show` is a boolean',
    'AttributeValueListItem: `name`',
    'AttributeValueListItem: `value`',
    'AttributeValueListItem: `num` is its position',
    'SubmittedResponse: `addNewUsers` is a boolean',
    'ErrorResponse: `errors` is a list of texts',
  ),
  ...of(
    '2.1',
    register('the lengths of a field are in its description when they are configured'),
    'Attribute: `minChars`, when present',
    'Attribute: `maxChars`, when present',
  ),
  ...of('2.1', fields, 'Attribute: `type` is text, text-area, text-list or list'),
  ...of(
    '2.1',
    register('starts the workflow with the fields of the form'),
    'RegisterRequest: `attributes` maps names to values',
  ),
  ...of(
    '2.1',
    register('by a logged-in user asks for the form to be reset'),
    '`addNewUsers` is true when the form should be reset',
  ),
  ...of(
    '2.1',
    register('a login is unique unless the form says otherwise'),
    'A value of a `unique` attribute is allowed once in the datastore',
  ),
  ...of(
    '2.1',
    register('D5: a reason that is not in the list is rejected'),
    'Where `reasonIsList`, the reason is one of `reasons`',
  ),
  ...of(
    '2.1',
    described('the paths, parameters and definitions of the specification are in it'),
    'Config, Attribute, AttributeValueListItem, RegisterRequest, SubmittedResponse and ErrorResponse are definitions of the description',
  ),

  ...of(
    '2.2',
    read,
    '`id`',
    '`schemas` contains the URN of User',
    '`userName` is the login name',
    '`name` has givenName and familyName',
    '`emails`: type, primary, value',
    '`groups`: $ref is an absolute URL of the group under the gateway path',
    '`meta.resourceType` is User',
    '`meta.location` is a URL',
  ),
  ...of(
    '2.2',
    tutorial("a user's groups have the ids of the groups, and users are found by them"),
    '`groups`: value is the identifier of the group',
  ),
  ...of('2.2', created, '`active` is accepted on creation'),
  ...of('2.2', patched, '`groups` is read-only: changes of a user leave it alone'),
  ...of('2.2', groups, 'A group has members, each with value and type, and a reference URL'),

  ...of(
    '2.3',
    joined,
    '`schemas` contains the URN of PatchOp',
    '`Operations` is a list',
    '`op`: add',
    '`path`: members',
    '`value`: a list of objects with value and type (User)',
  ),

  ...of(
    '2.4',
    wholeCall,
    '`requestor` identifies the requester',
    '`name` is the workflow to run',
    '`uidAttributeName` names the attribute that holds the user identifier',
    '`user` is the subject of the workflow',
    '`user.attributes`: name and values',
    '`user.groups`: group names',
    '`reason`',
    '`requestParams` is a map of texts',
  ),
  ...of(
    '2.4',
    wholeCall,
    ['`user.dn` is accepted', 'It decides nothing: the subject is found by its identifier.'],
    ['`user.directory` is accepted', 'It decides nothing, as `user.dn`.'],
  ),
  ...of('2.4', call('user.uid names the subject when the attribute is missing'), '`user.uid` is the user identifier'),
  ...of('2.4', call('user.uid and the attribute must not name different users'), [
    '`user.uid` and the attribute name one user',
    'A contradiction is 422.',
  ]),
  ...of('2.4', call('undeclared request parameters reach the workflow, as the specification says'), [
    'Any key of `requestParams` is accepted',
    'Except keys that steer the engine. `declaredParamsOnly` restricts it.',
  ]),
  ...of(
    '2.4',
    call('asynchronous and waiting runs are 202, with a status URL'),
    '`UNISON.EXEC.TYPE` with `UNISON.EXEC.ASYNC` requests asynchronous execution',
  ),

  ...of(
    '2.5',
    gateway('lookupFromLDAP: users are looked up below searchBase of the directory, by lookupAttributeName'),
    '`lookupFromLDAP` "true": lookups go through the virtual directory',
    '`searchBase` is the base of such lookups',
    '`lookupAttributeName`: the attribute users are looked up by',
    '`uidAttributeName`: the attribute that holds the login',
  ),
  ...of(
    '2.5',
    gateway(
      'lookupAttributeName may differ from uidAttributeName: created users are found, and ids that are shown are accepted',
    ),
    ['`lookupAttributeName` may differ from `uidAttributeName`', 'Its values are then the ids.'],
  ),
  ...of(
    '2.5',
    gateway('lookupTarget: without lookupFromLDAP users are looked up in the target'),
    '`lookupFromLDAP` "false": lookups go to a target',
    '`lookupTarget` names that target',
  ),
  ...of('2.5', read, '`searchBase` is empty otherwise'),
  ...of(
    '2.5',
    gateway('idAttributeName: the id is another attribute than the login'),
    '`idAttributeName`: a separate id attribute',
  ),
  ...of(
    '2.5',
    workflows,
    '`workflowName` synchronizes or creates a user, and no memberships',
    '`deleteUserWorkflowName` deletes a user',
    '`groupWorkflow` adds a user to a group, or removes it',
    '`groupDeleteWorkflow` deletes groups',
  ),
  ...of(
    '2.5',
    gateway('groupLookupAttributeName: workflows get the group by this attribute'),
    '`groupLookupAttributeName`: the attribute groups are looked up by',
  ),
  ...of(
    '2.5',
    groups,
    '`groupIdName`: the attribute with the unique id of a group',
    '`groupDisplayName`: the attribute with the display name',
    '`groupMemberAttributeName`: the attribute with the members',
  ),
  ...of('2.5', gateway('groupIdName: with a target, too, the id of a group is this attribute'), [
    '`groupIdName` works with a target',
    'A group without a value has the id of the target.',
  ]),
  ...of(
    '2.5',
    mapped,
    '`scim2tremolo` lists the internal attributes that SCIM attributes map to',
    '`scim2tremolo.<attr>.source` is a SCIM attribute, a mapper expression or a template',
    '`scim2tremolo.<attr>.sourceType` is user, custom or composite',
    '`tremolo2scim` lists the SCIM attributes that the gateway supports',
    '`tremolo2scim.<scimattr>.source` says how it is built',
    '`tremolo2scim.<scimattr>.sourceType` is user, custom or composite',
    'A composite source is a JSON template with `${attribute}` placeholders',
  ),
  ...of(
    '2.5',
    filters,
    '`userFilterScim2Ldap` maps attributes of SCIM filters about users, as `<scim>=<ldap>`',
    '`groupFilterScim2Ldap` does the same for groups',
  ),
  ...of('2.5', created, 'A custom source is a mapper name, `|` and parameters separated by commas'),
  ...of('2.5', names, ['A mapper may be named by its class alone', 'The last segment of the name is enough.']),
  ...of('2.5', created, 'A JSON-path mapper takes a SCIM attribute and a path into it'),
  ...of('2.5', read, 'A composite-no-return mapper takes one template, in base64'),
  ...of(
    '2.5',
    gateway('a groups-generating mapper takes the flag, the URL prefix of the gateway and a target'),
    'A groups-generating mapper takes the flag of lookupFromLDAP, the URL prefix of the gateway and a target',
  ),
  ...of(
    '2.5',
    tutorial('loads; check warns of the attribute that nothing produces, naming both positions'),
    'The gateway application has uri, hosts, authChain, azRules, results and a filter chain',
    'A workflow has description, inList, label, orgId and tasks',
    'Tasks: customTask (className, params)',
  ),
  ...of(
    '2.5',
    tutorial('another service account is denied, an unknown token rejected, and an unreachable API server is 503'),
    'A rule of scope dn names the distinguished name of the allowed caller',
  ),
  ...of('2.5', created, 'Tasks: provision (sync, target, attributes)'),
  ...of('2.5', joined, 'Tasks: addGroup (name, remove)'),
  ...of('2.5', deleted, 'Tasks: delete (target)'),
  ...of(
    '2.5',
    by(
      'src/modules/filters/scim-gateway/groups.test.ts',
      'runs one workflow for each member that changes, and reads no member list',
    ),
    'The gateway puts `$groupname$` into the request: the group that changes',
    'It puts `$removegroup$` into the request: true for a removal, false for an addition',
  ),

  ...of(
    '2.6',
    endpoint,
    'Endpoint: `name`',
    'Endpoint: `audience` is the audience of issued tokens',
    'Endpoint: `path` is its URL path',
    'Endpoint: `issuer.host` is the host of the issuer URL',
    'Endpoint: `issuer.keypair` names the key pair that signs',
    'Endpoint: key pairs may be distinct per endpoint',
  ),
  ...of('2.6', by('test/config-errors/sts.txt'), 'Endpoint: paths must differ'),
  ...of('2.6', tokens('issuers of different hosts may share a key pair, and their tokens stay apart'), [
    'Endpoint: two may have one key pair',
    '`check` warns of it, and refuses it for two issuers of one host.',
  ]),
  ...of(
    '2.6',
    tokenRules,
    'Endpoint: `azRules` authorize service accounts',
    'Endpoint: a rule of scope filter is an LDAP filter',
    'Rules know `namespace`',
    'Rules know `saname`',
    'Rules know `cluster`',
  ),
  ...of(
    '2.6',
    injected,
    'Endpoint: `injector.label` is the suffix of the label of workloads to be injected',
    'Endpoint: `injector.token_environment_variable_name` points at the issued JWT',
    'Endpoint: `injector.label_value_environment_variable_name` holds the value of the annotation',
    'Endpoint: `explicit_certificate_trust` trusts `ca.crt` of the config map `ouca`',
  ),
  ...of('2.6', discovery, 'Issuer documents: JSON with `discovery`'),
  ...of('2.6', published, 'Issuer documents: JSON with `keys`'),
  ...of(
    '2.6',
    discovery,
    'Discovery: `issuer`',
    'Discovery: `authorization_endpoint`',
    'Discovery: `token_endpoint`',
    'Discovery: `userinfo_endpoint`',
    'Discovery: `revocation_endpoint`',
    'Discovery: `jwks_uri`',
    [
      'Discovery: `response_types_supported`',
      'The specification gives no values. OpenUnison lists eight combinations of interactive flows, none of which the token service serves; the list has `id_token`, which it issues.',
    ],
    'Discovery: `subject_types_supported` is public',
    'Discovery: `id_token_signing_alg_values_supported` is RS256',
    'Discovery: `scopes_supported` is openid, email, profile',
    'Discovery: `token_endpoint_auth_methods_supported` is client_secret_post',
    'Discovery: `claims_supported` has sub, aud, iss, exp, cluster, namespace, saname',
    'Discovery: `code_challenge_methods_supported` is plain, S256',
    'Discovery: endpoint URLs are built on the issuer URL',
  ),

  ...of(
    '4.1',
    form,
    'GET /register/config: 200, application/json, Config',
    'GET /register/values: 200, a list of AttributeValueListItem',
    'POST /register/submit: 200 SubmittedResponse',
    'POST /register/submit: 500 ErrorResponse for a failed validation',
  ),
  ...of(
    '4.1',
    register('returns one field, and all of them'),
    'GET /register/values: `name` is the attribute whose values are wanted, and optional',
    'GET /register/values: `search` is a value to search for, and optional',
  ),
  ...of(
    '4.1',
    register('a dynamic %s can be searched with one character, and without any'),
    'A search of a list or text-list may be of any length, or absent',
  ),
  ...of(
    '4.1',
    described('Swagger is 2.0, of version 1.0.0, over https and http'),
    'The API is offered over https and http',
  ),

  ...of('4.2', read, 'Paths are relative to the gateway path', 'JSON bodies are application/scim+json'),
  ...of('4.2', read, 'GET /Users/<id> returns the user'),
  ...of('4.2', created, 'POST /Users finds the user in the target, or adds it, and sets attributes'),
  ...of('4.2', patched, 'PATCH /Users/<id> changes attributes and no memberships'),
  ...of('4.2', joined, 'PATCH /Groups/<id> runs groupWorkflow and adds the user to the group'),
  ...of('4.2', left, 'PATCH /Groups/<id> removes the user from the group, and other attributes stay'),
  ...of(
    '4.2',
    by(
      'src/modules/workflow-tasks/load-user/load-groups-from-target.test.ts',
      "adds the target's groups to the user's",
    ),
    'The group workflow loads the current groups of the user from the target',
  ),
  ...of('4.2', deleted, 'DELETE /Users/<id> runs deleteUserWorkflowName, which deletes the user in the target'),
  ...of(
    '4.2',
    by('test/stories/two-gateways.test.ts', 'a user created through one gateway is unknown to the other'),
    'Several gateways coexist, each with its target, workflows, name and path',
  ),

  ...of(
    '4.3',
    documentedCall,
    'POST /call-workflow takes the body of 2.4 as application/json',
    'Authorization: Bearer <ID_TOKEN>',
    'It runs the named workflow directly',
  ),
  ...of(
    '4.3',
    calls(
      'a service account names requester, user and groups without further configuration, and is shown beside the requester',
    ),
    [
      'It validates nothing beyond the rules of the URL',
      'That holds for callers without a directory entry; users of the directory act for themselves.',
    ],
  ),
  ...of(
    '4.3',
    calls('an asynchronous call is accepted, done, and shown only to the caller that started it'),
    'The path is that of the URL of the application',
  ),
  ...of(
    '4.3',
    pipeline('a decision is cached for azTimeoutMillis, and no longer'),
    'An application has an authorization-cache timeout in milliseconds',
  ),
  ...of(
    '4.3',
    by('src/engine/pipeline/cookie-session.test.ts', 'does not exist if cookies are off, and for callers of level 0'),
    'Cookies are disabled for APIs',
  ),
  ...of(
    '4.3',
    pipeline('passes an allowed request to the filter, with the path below its mount'),
    'A URL has authChain, azRules, a filter chain, hosts and uri',
  ),
  ...of(
    '4.3',
    by(
      'src/engine/pipeline/rule-evaluator.test.ts',
      'D25: filter matches substrings literally and denies what is undefined',
    ),
    'azRules may be filters over attributes',
  ),

  ...of('4.4', discovery, 'GET {base_url}<sts_path>/issuer-docs returns discovery and keys'),
  ...of(
    '4.4',
    published,
    'The discovery document is at <issuer_url>/.well-known/openid-configuration',
    'The key document is at <issuer_url>/certs',
  ),

  ...of('5', created, 'An application names the chain that protects it (authChain)'),
  ...of(
    '5',
    by('src/engine/pipeline/chain.test.ts', 'ends at the first required mechanism that rejects'),
    'A chain is an ordered list of mechanisms, each with a required flag and parameters',
  ),
  ...of(
    '5',
    by('src/engine/pipeline/chain.test.ts', 'gives the subject the chain and its level'),
    'A chain has a level',
  ),
  ...of(
    '5',
    jwt('is verified with a pinned key, without asking the issuer'),
    'JWT validation against a pinned certificate of the issuer',
  ),
  ...of(
    '5',
    jwt('is a mock entry with the claims as attributes'),
    'JWT validation against a discovery document',
    'A user who is not in the directory is a mock entry, which can be used',
  ),
  ...of(
    '5',
    account('is known by sub and by username, with the attributes that the cluster returns'),
    'Service-account mechanism: `k8sTarget`',
    'Service-account mechanism: `noMatchOU` is the unit of users who are not found',
    'Service-account mechanism: `uidAttr` is the claim that identifies',
    'Service-account mechanism: `defaultObjectClass`',
  ),
  ...of(
    '5',
    account('may be an entry of the directory'),
    'Service-account mechanism: `linkToDirectory` looks the user up in the virtual directory',
    'Service-account mechanism: `lookupFilter` may include claims as `${claim}`',
  ),
  ...of('5', account('%s, with the required audience'), [
    'Service-account mechanism: a token with another audience is refused',
    'The answer names the wanted audience.',
  ]),
  ...of(
    '5',
    account('a refusal names realm and scope'),
    'Service-account mechanism: `realm`',
    'Service-account mechanism: `scope`',
  ),
  ...of('5', read, 'SCIM gateway: Authorization: Bearer <ACCESS_TOKEN>'),
  ...of(
    '5',
    tutorial('another service account is denied, an unknown token rejected, and an unreachable API server is 503'),
    "SCIM gateway: azRules limit access to the caller's distinguished name",
  ),
  ...of('5', minute, 'Call-workflow API: the id_token is valid for one minute'),
  ...of(
    '5',
    by(
      'src/modules/filters/token-api/token-api.test.ts',
      'a new id_token requires logout and login, unless renewTokens says otherwise',
    ),
    'Call-workflow API: the id_token does not refresh',
  ),
  ...of('5', minute, 'Call-workflow API: a new id_token requires logout and login'),
  ...of(
    '5',
    by(
      'src/engine/pipeline/cookie-session.test.ts',
      'starts with authentication and then replaces it, without the chain',
    ),
    'The session cookie authenticates calls of portal APIs by a browser',
  ),
  ...of(
    '5',
    endpoint,
    'Token service: the workload presents its bound token',
    'Token service: the issued token has the audience of the endpoint',
  ),
  ...of('5', tokenRules, 'Token service: azRules over namespace, saname and cluster decide'),
  ...of('5', tokens('a bound token for another audience is rejected, and the answer names the required one'), [
    'Token service: the bound token is for the service',
    'Another audience is refused with the name of the wanted one.',
  ]),
  ...of('5', endpoint, 'Token service: the published keys validate the issued token'),
  ...of('5', register('starts the workflow with the fields of the form'), [
    'The registration API declares no security scheme',
    'It takes anonymous callers, unless its URL has a chain.',
  ]),

  ...of('7', form, 'POST /register/submit: a failed validation is 500 with `errors`, a list of texts'),

  ...of('8', minute, 'The id_token for the call-workflow API lives one minute'),
  ...of(
    '8',
    by(
      'src/modules/shared/forms/form-values.test.ts',
      'has as many characters as minChars and maxChars allow, if configured',
    ),
    'minChars and maxChars bound the length of an attribute, when present',
  ),
  ...of('8', pipeline('a decision is cached for azTimeoutMillis, and no longer'), '`azTimeoutMillis` is configurable'),
  ...of(
    '8',
    by('src/engine/pipeline/cookie-session.test.ts', 'expires when it is idle'),
    'The cookie timeout, in seconds, is configurable',
  ),

  ...of(
    '9',
    described('%s: Swagger is valid by the official schema of Swagger 2.0'),
    'The registration API is described as Swagger 2.0',
  ),
  ...of(
    '9',
    described('Swagger is 2.0, of version 1.0.0, over https and http'),
    'Its version is 1.0.0',
    'Its schemes are https and http',
  ),
  ...of('9', read, 'The gateway speaks SCIM 2.0'),
  ...of(
    '9',
    names,
    'Applications have apiVersion v2',
    'Authentication mechanisms, chains and workflows have apiVersion v1',
  ),
  ...of(
    '9',
    by(
      'test/kube/sts-exchange.kube.test.ts',
      'one pod gets two valid tokens of two endpoints, which the keys in the cluster’s ConfigMaps verify',
    ),
    'The token service needs a cluster with short-lived bound identities',
  ),
  ...of('9', described('no path has a version segment'), 'No version segment appears in any path'),
]

const cell = (text: string): string => text.replaceAll('|', '\\|')

/** The page `docs/specification.md`. */
export function specificationPage(): string {
  const parts = sections.map(([section, title]) => {
    const rows = statements
      .filter((one) => one.section === section)
      .map(({ statement, proof, note }) => {
        const said = note === undefined ? statement : `${statement}. ${note}`
        const test = proof.title === undefined ? 'golden file' : cell(proof.title)
        return `| ${cell(said)} | ${test} | [${proof.file.split('/').at(-1)}](../${proof.file}) |`
      })
    return [`## ${section} ${title}`, '', '| Statement | Test | File |', '|---|---|---|', ...rows].join('\n')
  })
  return `# The specification, statement by statement

Each of the ${statements.length} statements of the specification that Gatehouse implements, in our own words, with the test that proves it. \`test/specification.ts\` is the source of this
page; \`npm run specification\` writes it, and \`test/specification.test.ts\` fails where the page is out of date or a test is gone. What the specification leaves open ("not
shown") is not here; the [reference](reference/README.md) describes what Gatehouse does there. [Different on purpose](#different-on-purpose) lists the exceptions.

${parts.join('\n\n')}

## Different on purpose

${differencesTable()}
`
}

if (import.meta.main) {
  writeFileSync('docs/specification.md', specificationPage())
  writeMigrationPage()
}
