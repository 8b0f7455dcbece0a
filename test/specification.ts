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
const formValues = (title: string): Proof => by('src/sdk/forms/form-values.test.ts', title)
const register = (title: string): Proof => by('src/features/registration/register.test.ts', title)
const configured = register('every field of Config and of its attributes has the configured value')
const page = (title: string): Proof => by('portal/src/pages/register/register-form.test.ts', title)
const described = (title: string): Proof => by('test/api-description.test.ts', title)
const tutorial = (title: string): Proof => by('test/stories/predecessor-tutorial/tutorial.test.ts', title)
const portal = (title: string): Proof => by('src/features/portal/site/portal-site.test.ts', title)
const main = (title: string): Proof => by('test/stories/main-api.test.ts', title)
const gateway = (title: string): Proof => by('src/features/scim/gateway/specification.test.ts', title)
const call = (title: string): Proof => by('src/features/call-workflow/call-workflow.test.ts', title)
const calls = (title: string): Proof => by('test/stories/call-workflow.test.ts', title)
const tokens = (title: string): Proof => by('test/stories/specification-token-service.test.ts', title)
const pipeline = (title: string): Proof => by('src/requests/pipeline/pipeline.test.ts', title)
const account = (title: string): Proof =>
  by('src/adapters/auth-mechanisms/oauth2-k8s-service-account/oauth2-k8s-service-account.test.ts', title)
const jwt = (title: string): Proof => by('src/adapters/auth-mechanisms/oauth2-jwt/oauth2-jwt.test.ts', title)
const names = by('test/config-errors/specification-names.txt')

const read = tutorial('one: a user is read')
const created = tutorial('two: the workflow creates a user, with the attributes that it provisions')
const joined = tutorial('three: the user joins a group, and nothing else changes')
const patched = tutorial('a PATCH of the user changes attributes, and no memberships')
const left = tutorial('the user leaves the group by the same workflow, and keeps all attributes')
const otherCallers = tutorial(
  'another service account is denied, an unknown token rejected, and an unreachable API server is 503',
)
const deleted = tutorial('five: the user is deleted; deleting again is 404')
const workflows = gateway(
  'workflowName, deleteUserWorkflowName, groupWorkflow and groupDeleteWorkflow name the workflows',
)
const mapped = gateway('scim2tremolo and tremolo2scim map by attribute, by mapper and by template')
const filters = gateway('userFilterScim2Ldap and groupFilterScim2Ldap name the attributes that filters are about')
const groups = gateway(
  'groups are known by groupIdName, shown by groupDisplayName, with the members of groupMemberAttributeName',
)
const loadsGroups = by(
  'src/adapters/workflow-tasks/load-user/load-groups-from-target.test.ts',
  "adds the target's groups to the user's",
)
const loaded = by('src/config/load/load.test.ts', 'keeps names, namespaces and places')
const memberRuns = by(
  'src/features/scim/gateway/groups.test.ts',
  'runs one workflow for each member that changes, and reads no member list',
)
const provision = (title: string): Proof => by('src/adapters/workflow-tasks/provision/provision.test.ts', title)
const wholeCall = call('a call with all members runs the workflow for the subject that the named attribute contains')
const documentedCall = calls('the documented call works as written, token included')
const endpoint = tokens('an endpoint has a path, an audience, an issuer host and a key pair')
const tokenRules = tokens('rules over namespace, saname and cluster decide who gets a token')
const discovery = tokens('the discovery document has the fields of the specification')
const published = tokens('the documents are published below the issuer')
const bound = tokens('only a valid bound token of a workload is exchanged')
const verified = tokens('a remote service verifies a token with the published documents alone')
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
  ...of(
    '1',
    by('test/stories/two-gateways.test.ts', 'a user created through one gateway is unknown to the other'),
    'Each API is a filter that is configured by itself',
  ),
  ...of('1', configured, 'The Registration API returns the configuration of a form'),
  ...of('1', register('returns one field, and all of them'), 'It returns the allowed values of list attributes'),
  ...of('1', register('reports every problem at once, and starts nothing'), 'It validates a submitted registration'),
  ...of('1', register('starts the workflow with the fields of the form'), 'A valid registration starts a workflow'),
  ...of('1', workflows, 'The SCIM gateway turns each SCIM call into a call of a named workflow'),
  ...of('1', created, 'A custom target of the user talks to the application'),
  ...of('1', joined, 'An external identity system manages memberships through SCIM calls'),
  ...of('1', documentedCall, 'The call-workflow API starts a named workflow directly'),
  ...of('1', call('attributes reach the workflow without validation'), [
    'It does so without additional validation',
    'The rules of the URL and the rights of the caller still hold, and engine keys are refused.',
  ]),
  ...of('1', endpoint, 'The token service issues a JWT for one remote service to a workload with a bound token'),
  ...of('1', bound, 'It validates the bound token'),
  ...of('1', tokenRules, 'It authorizes the workload by rules'),
  ...of('1', verified, 'Remote services validate the token by a discovery document and a key document'),
  ...of(
    '1',
    by(
      'test/stories/token-consumers.test.ts',
      'finds the keys through the discovery document, and verifies the token with them',
    ),
    [
      'These documents can be hosted anywhere',
      'Gatehouse serves them, or publishes them to a folder, a ConfigMap, a bucket or an address.',
    ],
  ),
  ...of(
    '1',
    portal('is one page over the APIs Main, Register and Token'),
    'The portal is a single-page application over the APIs Main, Register and Token',
  ),
  ...of(
    '1',
    main('config, profile, orgs and links show what the caller may see'),
    'The Main API has the badges of the portal',
  ),
  ...of('1', main('access is requested, approved by another user, and granted'), 'The Main API has access requests'),
  ...of(
    '1',
    by('test/stories/reports.test.ts', "a request is in the requester's report, until it is decided"),
    'The Main API has reports',
  ),
  ...of(
    '1',
    by('src/features/portal/token-page/token-api.test.ts', 'D20: reading creates nothing; only POST creates tokens'),
    'The Token API shows the id_token to the user',
  ),
  ...of('1', portal('works at the root'), ['The base address is {base_url}', 'Any path, or none.']),
  ...of(
    '1',
    by(
      'src/requests/pipeline/cookie-session.test.ts',
      'is valid for the applications that share its cookie, and for no other',
    ),
    'Each API may have a session context of its own',
  ),
  ...of(
    '1',
    by('src/requests/pipeline/cookie-session.test.ts', 'each URL authenticates by its own chain'),
    'Each API may have an authentication chain of its own',
  ),
  ...of(
    '1',
    by('test/stories/two-gateways.test.ts', 'each gateway has its own rules'),
    'Each API may have rules of its own',
  ),

  ...of(
    '2.1',
    form,
    'Config and Attribute have each field of their tables, of the type given there',
    'AttributeValueListItem: `name`, `value` and `num`',
    'SubmittedResponse: `addNewUsers` is a boolean',
    'ErrorResponse: `errors` is a list of texts',
  ),
  ...of(
    '2.1',
    configured,
    'Config: `frontPage` is an object',
    'Config: `frontPage.title` is the title of the form',
    'Config: `frontPage.text` is the text of the page',
    'Config: `homeURL` is the URL of the home page',
    'Config: `logoutURL` is the URL to log out',
    'Config: `attributes` is a list of Attribute',
    'Config: `attributeNameList` names the attributes',
    'Config: `requireReason` is a boolean',
    'Config: `preSetPassword` is a boolean',
    'Config: `requireReCaptcha` is a boolean',
    'Config: `requireTermsAndConditions` is a boolean',
    'Config: `reasonIsList` is a boolean',
    'Config: `reasons` lists the allowed reasons',
    'Config: `submitButtonText` is the text of the button',
    'Config: `submittedText` is the text after a submission',
    'Attribute: `name`',
    'Attribute: `displayName` is the label',
    'Attribute: `readOnly` is a boolean',
    'Attribute: `required` is a boolean',
    'Attribute: `regEx` is a regular expression',
    'Attribute: `unique` is a boolean',
    'Attribute: `values` is a list of AttributeValueListItem',
    'Attribute: `show` is a boolean',
    ['AttributeValueListItem: `num` is its position', 'In the answer, also in one to a search.'],
  ),
  ...of('2.1', page('frontPage and submitButtonText are the title, the text and the button'), [
    'The page shows `frontPage` and `submitButtonText`',
    'The page of the portal. Other pages get the same Config.',
  ]),
  ...of(
    '2.1',
    register('requireReason: a registration without a reason is refused'),
    '`requireReason`: the workflow request requires a reason',
  ),
  ...of(
    '2.1',
    register('preSetPassword: a registration has a password; otherwise none is accepted'),
    '`preSetPassword`: a registration has a password',
  ),
  ...of('2.1', page('preSetPassword shows the password fields'), '`preSetPassword`: the page shows a password screen'),
  ...of('2.1', register('requireReCaptcha: a registration without a solved CAPTCHA is refused'), [
    '`requireReCaptcha`: a registration needs a solved CAPTCHA',
    'It is also true for Turnstile, and for reCAPTCHA v3, which has no box.',
  ]),
  ...of(
    '2.1',
    page('requireReCaptcha shows a box for the CAPTCHA'),
    '`requireReCaptcha`: the page shows a CAPTCHA box',
  ),
  ...of(
    '2.1',
    register('requireTermsAndConditions: a registration without the accepted terms is refused'),
    '`requireTermsAndConditions`: a registration needs the accepted terms',
  ),
  ...of(
    '2.1',
    page('requireTermsAndConditions shows a checkbox'),
    '`requireTermsAndConditions`: the page shows a checkbox',
  ),
  ...of(
    '2.1',
    register('reasonIsList: only the listed reasons are accepted; otherwise any is'),
    'Where `reasonIsList`, the reason is one of `reasons`',
  ),
  ...of(
    '2.1',
    page('requireReason shows a field for the reason, and reasonIsList the reasons as a list'),
    '`reasonIsList`: the page shows `reasons` as a list',
  ),
  ...of(
    '2.1',
    page('submittedText is shown after a submission; before a mail is confirmed, the page says where it went'),
    '`submittedText` is shown after a submission',
  ),
  ...of(
    '2.1',
    register('submittedText: is shown when the mail address is confirmed'),
    'If the mail address must be confirmed, it is shown after the confirmation',
  ),
  ...of(
    '2.1',
    formValues('readOnly: the value of the server counts, and another one is refused'),
    '`readOnly`: the value cannot be changed',
  ),
  ...of(
    '2.1',
    formValues('required: a value must be sent; otherwise it may be absent'),
    '`required`: the value must be in the request',
  ),
  ...of('2.1', formValues('regEx: the whole value must match'), [
    '`regEx` validates the value',
    'The whole value must match. Only a present value is validated.',
  ]),
  ...of(
    '2.1',
    register('the lengths of a field are in its description when they are configured'),
    'Attribute: `minChars`, when present',
    'Attribute: `maxChars`, when present',
  ),
  ...of(
    '2.1',
    formValues('has as many characters as minChars and maxChars allow, if configured'),
    '`minChars` is the minimum number of characters',
    '`maxChars` is the maximum number of characters',
  ),
  ...of('2.1', register('unique: a value that a user of the datastore has is refused; otherwise it is accepted'), [
    'A value of a `unique` attribute is allowed once in the datastore',
    'The datastore is the virtual directory. Letter case makes no difference.',
  ]),
  ...of(
    '2.1',
    formValues('a field is a text, a text-area, a text-list or a list, and nothing else'),
    'Attribute: `type` is text, text-area, text-list or list',
  ),
  ...of('2.1', formValues('type: only a text-area has lines'), 'A `text-area` takes several lines'),
  ...of('2.1', formValues('values: a list takes its values and no other, a text takes any'), [
    '`values` are the allowed values',
    'Of `list` and of `text-list`.',
  ]),
  ...of('2.1', formValues('show: a field that is not shown takes no value from the form'), [
    'An attribute without `show` is not set by the form',
    'Its value is `default`, or an attribute of the signed-in user.',
  ]),
  ...of(
    '2.1',
    page('an attribute has its label and its kind of field; one that is not shown is absent'),
    'The page shows each attribute with `show`, by its `displayName`, `type`, `values` and `readOnly`',
  ),
  ...of(
    '2.1',
    register('starts the workflow with the fields of the form'),
    'RegisterRequest: `attributes` maps names to values',
  ),
  ...of('2.1', register('by a logged-in user asks for the form to be reset'), [
    '`addNewUsers` is true when the form should be reset',
    'For a signed-in user, who may register several.',
  ]),
  ...of(
    '2.1',
    form,
    'Config, Attribute, AttributeValueListItem, RegisterRequest, SubmittedResponse and ErrorResponse are definitions of the description',
  ),
  ...of(
    '2.1',
    described('the paths, parameters and definitions of the specification are in it'),
    'The description has the paths, their parameters and their responses',
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
  ...of(
    '2.2',
    tutorial('groups of a user are read-only: no change of the user changes them'),
    '`groups` is read-only: changes of a user leave it alone',
  ),
  ...of('2.2', groups, 'A group has members, each with value and type, and a reference URL'),

  ...of('2.3', gateway('a strict client sends the URN of PatchOp; others may leave it out'), [
    '`schemas` contains the URN of PatchOp',
    'Only `client: strict` requires it.',
  ]),
  ...of(
    '2.3',
    tutorial('a PATCH has a list of operations, with a known op, a known path and members by value'),
    '`Operations` is a list of objects with op, path and value',
  ),
  ...of('2.3', joined, '`op`: add', '`path`: members', '`value`: a list of objects with value and type (User)'),
  ...of('2.3', left, ['`op`: remove', 'The specification shows add only. RFC 7644 has remove and replace.']),

  ...of(
    '2.4',
    wholeCall,
    '`requestor` identifies the requester',
    '`name` is the workflow to run',
    '`user` is the subject of the workflow',
    '`user.attributes`: name and values',
    '`user.groups`: group names',
    '`reason`',
    '`requestParams` is a map of texts',
  ),
  ...of(
    '2.4',
    call('uidAttributeName chooses the attribute with the subject'),
    '`uidAttributeName` names the attribute that holds the user identifier',
  ),
  ...of('2.4', call('a body of another form is rejected: %#'), 'Members of another type are refused'),
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
  ),
  ...of(
    '2.5',
    gateway('uidAttributeName: the login is the value of this attribute'),
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
    '`groupDeleteWorkflow` deletes groups',
  ),
  ...of('2.5', gateway('groupDeleteWorkflow: without it, DELETE of a group is 501, and the group stays'), [
    '`groupDeleteWorkflow`, if supported',
    'Without it, DELETE of a group is 501.',
  ]),
  ...of('2.5', memberRuns, '`groupWorkflow` adds a user to a group, or removes it'),
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
    '`tremolo2scim` lists the SCIM attributes that the gateway supports',
    '`tremolo2scim.<scimattr>.source` says how it is built',
    '`scim2tremolo`: a source is read by its sourceType user, custom or composite',
    '`tremolo2scim`: a source is read by its sourceType user or composite',
    'A composite source is a JSON template with `${attribute}` placeholders',
  ),
  ...of(
    '2.5',
    gateway('%s.sourceType is user, custom or composite'),
    [
      '`scim2tremolo.<attr>.sourceType` is user, custom or composite',
      '`static`, a fixed value, is a fourth, as in OpenUnison.',
    ],
    '`tremolo2scim.<scimattr>.sourceType` is user, custom or composite',
  ),
  ...of(
    '2.5',
    filters,
    '`userFilterScim2Ldap` maps attributes of SCIM filters about users, as `<scim>=<ldap>`, separated by commas',
    '`groupFilterScim2Ldap` does the same for groups',
  ),
  ...of('2.5', created, 'A custom source is a mapper name, `|` and parameters separated by commas'),
  ...of('2.5', names, ['A mapper may be named by its class alone', 'The last segment of the name is enough.']),
  ...of('2.5', created, 'A JSON-path mapper takes a SCIM attribute and a path into it'),
  ...of('2.5', read, '`tremolo2scim`: a source is read by its sourceType custom'),
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
  ),
  ...of('2.5', otherCallers, 'A rule of scope dn names the distinguished name of the allowed caller'),
  ...of('2.5', loadsGroups, 'Tasks: customTask (className, params)'),
  ...of('2.5', main('D7: neither unlisted workflows nor those elsewhere can be requested, and nothing is started'), [
    '`inList` and `orgId` of a workflow',
    'Users can request a workflow that is in the list of an organization that they see.',
  ]),
  ...of(
    '2.5',
    provision('attributes outside the list never reach the target'),
    'Tasks: provision (target, attributes)',
  ),
  ...of(
    '2.5',
    provision('makes listed attributes and groups equal, and clears a listed attribute that the user does not have'),
    ['Tasks: provision with sync true', 'The listed attributes become those of the user. Others stay.'],
  ),
  ...of('2.5', provision('only adds'), ['Tasks: provision with sync false', 'It adds values and removes none.']),
  ...of('2.5', joined, 'Tasks: addGroup (name)'),
  ...of('2.5', left, 'Tasks: addGroup (remove)'),
  ...of('2.5', deleted, 'Tasks: delete (target)'),
  ...of(
    '2.5',
    memberRuns,
    'The gateway puts `$groupname$` into the request: the group that changes',
    'It puts `$removegroup$` into the request: true for a removal, false for an addition',
  ),

  ...of('2.6', injected, ['Endpoint: `name`', 'It is in the paths of token files, in commands and in the log.']),
  ...of(
    '2.6',
    endpoint,
    'Endpoint: `audience` is the audience of issued tokens',
    'Endpoint: `issuer.host` is the host of the issuer URL',
    'Endpoint: `issuer.keypair` names the key pair that signs',
    'Endpoint: key pairs may be distinct per endpoint',
  ),
  ...of('2.6', tokens('an endpoint is at its path, and not at its name'), 'Endpoint: `path` is its URL path'),
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
    'Endpoint: `explicit_certificate_trust` gives the sidecar `ca.crt` of the config map `ouca`',
  ),
  ...of(
    '2.6',
    by(
      'src/features/sts/injector/sidecar.programs.test.ts',
      'with all the authorities of a large organization in the ConfigMap',
    ),
    'The sidecar trusts the certificates of that file',
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
    by('test/stories/registration.test.ts', 'the API is offered over https and over http'),
    'The API is offered over https and http',
  ),

  ...of('4.2', read, 'Paths are relative to the gateway path', 'JSON bodies are application/scim+json'),
  ...of('4.2', read, 'GET /Users/<id> returns the user'),
  ...of('4.2', created, 'POST /Users adds a user that the target lacks, and sets attributes'),
  ...of('4.2', tutorial('a user that the target has is found, and not added again'), [
    'POST /Users finds the user in the target',
    'The answer is then 409 uniqueness, as RFC 7644 says, and no workflow runs.',
  ]),
  ...of('4.2', patched, 'PATCH /Users/<id> changes attributes and no memberships'),
  ...of(
    '4.2',
    joined,
    'PATCH /Groups/<id> runs groupWorkflow and adds the user to the group, and other attributes stay',
  ),
  ...of('4.2', memberRuns, 'PATCH /Groups/<id> passes the user with only the key attribute to groupWorkflow'),
  ...of('4.2', left, 'PATCH /Groups/<id> removes the user from the group, and other attributes stay'),
  ...of('4.2', loadsGroups, 'The group workflow loads the current groups of the user from the target'),
  ...of('4.2', deleted, 'DELETE /Users/<id> runs deleteUserWorkflowName, which deletes the user in the target'),
  ...of(
    '4.2',
    by('test/stories/two-gateways.test.ts', 'a user created through one gateway is unknown to the other'),
    'Several gateways coexist, each with its target, workflows, name and path',
  ),

  ...of('4.3', minute, 'Authorization: Bearer <ID_TOKEN>'),
  ...of(
    '4.3',
    documentedCall,
    'POST /call-workflow takes the body of 2.4 as application/json',
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
  ...of('4.3', read, 'Cookies are disabled for APIs, by cookiesEnabled: false'),
  ...of('4.3', loaded, 'An application has azTimeoutMillis, cookieConfig and urls, with the keys below'),
  ...of('4.3', otherCallers, 'A URL has an authChain'),
  ...of('4.3', pipeline('without a rule that passes it is 403, and no filter runs'), 'A URL has azRules'),
  ...of('4.3', pipeline('filters run in order, and a request that none answers is 404'), 'A URL has a filter chain'),
  ...of(
    '4.3',
    by('src/requests/routing/routes.test.ts', 'prefers the host to the star, even with a shorter uri'),
    'A URL has hosts',
  ),
  ...of('4.3', pipeline('passes an allowed request to the filter, with the path below its mount'), 'A URL has a uri'),
  ...of(
    '4.3',
    by(
      'src/requests/routing/rule-evaluator.test.ts',
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
  ...of('4.4', verified, [
    'A remote service fetches both over https',
    'Issuer URLs begin with https. The listener, or a proxy before it, has the certificate.',
  ]),
  ...of('4.4', injected, [
    'The injector gets tokens through a sidecar',
    'The exchange itself is RFC 8693, which the specification leaves open.',
  ]),
  ...of(
    '4.4',
    by(
      'src/features/sts/injector/sidecar.programs.test.ts',
      'A3: one process writes the tokens of two endpoints, each with its own',
    ),
    'The sidecar gets the tokens of its endpoints, and writes each to its file',
  ),

  ...of('5', otherCallers, 'An application names the chain that protects it (authChain)'),
  ...of(
    '5',
    by('src/requests/routing/chain.test.ts', 'ends at the first required mechanism that rejects'),
    'A chain is an ordered list of mechanisms',
  ),
  ...of(
    '5',
    by(
      'src/requests/routing/chain.test.ts',
      'continues after an optional one, and reports its rejection if no user was established',
    ),
    'Each mechanism of a chain has a required flag',
  ),
  ...of('5', read, 'Each mechanism of a chain has parameters'),
  ...of('5', by('src/config/load/load.test.ts', 'a chain has its level and its root'), 'A chain has a level'),
  ...of(
    '5',
    by('src/requests/routing/chain.test.ts', 'gives the subject the chain and its level'),
    'A user has the level of the chain',
  ),
  ...of(
    '5',
    jwt('is verified with a pinned key, without asking the issuer'),
    'JWT validation against a pinned certificate of the issuer',
  ),
  ...of(
    '5',
    by('src/keys/key-source.test.ts', 'is read from a public key, a private key or a certificate'),
    'The pinned certificate is a file',
  ),
  ...of(
    '5',
    by('src/keys/key-source.test.ts', 'comes from a secret if no file has that name'),
    'The pinned certificate may be a secret',
  ),
  ...of('5', jwt('is forgotten when its key is removed'), 'JWT validation against a discovery document'),
  ...of('5', jwt('is a mock entry if not found'), 'A user who is not in the directory is a mock entry'),
  ...of('5', read, 'A mock entry can be used: rules know its distinguished name'),
  ...of(
    '5',
    account('is reviewed by the cluster of k8sTarget'),
    'Service-account mechanism: `k8sTarget` names the cluster',
  ),
  ...of(
    '5',
    account('noMatchOU, uidAttr and defaultObjectClass decide its name and its class'),
    'Service-account mechanism: `noMatchOU` is the unit of users who are not found',
    'Service-account mechanism: `uidAttr` is the claim that identifies',
    'Service-account mechanism: `defaultObjectClass` is the class of such users',
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
  ...of('5', otherCallers, "SCIM gateway: azRules limit access to the caller's distinguished name"),
  ...of('5', minute, 'Call-workflow API: the id_token is valid for one minute'),
  ...of(
    '5',
    by(
      'src/features/portal/token-page/token-api.test.ts',
      'a new id_token requires logout and login, unless renewTokens says otherwise',
    ),
    'Call-workflow API: the id_token does not refresh',
  ),
  ...of('5', minute, 'Call-workflow API: a new id_token requires logout and login'),
  ...of(
    '5',
    by(
      'src/requests/pipeline/cookie-session.test.ts',
      'starts with authentication and then replaces it, without the chain',
    ),
    'The session cookie authenticates calls of portal APIs by a browser',
  ),
  ...of('5', bound, 'Token service: the workload presents its bound token'),
  ...of('5', endpoint, 'Token service: the issued token has the audience of the endpoint'),
  ...of('5', tokenRules, 'Token service: azRules over namespace, saname and cluster decide'),
  ...of('5', tokens('a bound token for another audience is rejected, and the answer names the required one'), [
    'Token service: the bound token is for the service',
    'Another audience is refused with the name of the wanted one.',
  ]),
  ...of('5', verified, 'Token service: the published documents validate the issued token'),
  ...of('5', form, [
    'The registration API declares no security scheme',
    'It takes anonymous callers, unless its URL has a chain.',
  ]),

  ...of('7', form, 'POST /register/submit: a failed validation is 500 with `errors`, a list of texts'),

  ...of('8', minute, 'The id_token for the call-workflow API lives one minute'),
  ...of(
    '8',
    formValues('has as many characters as minChars and maxChars allow, if configured'),
    'minChars and maxChars bound the length of an attribute, when present',
  ),
  ...of('8', loaded, '`azTimeoutMillis` and the cookie timeout are configurable'),
  ...of(
    '8',
    pipeline('a decision is cached for azTimeoutMillis, and no longer'),
    '`azTimeoutMillis` is in milliseconds',
  ),
  ...of(
    '8',
    by('src/requests/pipeline/cookie-session.test.ts', 'expires when it is idle'),
    'The cookie timeout is in seconds',
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
  ...of('9', bound, [
    'The token service needs a cluster with short-lived bound identities',
    'Kubernetes 1.24 or later; `acceptTokensWithoutPod` allows others. The tier `kube` exchanges tokens of a real API server.',
  ]),
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
