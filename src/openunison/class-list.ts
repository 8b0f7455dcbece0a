/** What Gatehouse leaves to other products, with what to put in its place. */
export const outsideAreas = {
  proxy:
    'Gatehouse is not a reverse proxy: use one in front of the application, such as oauth2-proxy, or kube-oidc-proxy for the API of a cluster',
  SAML: 'use OpenID Connect; an identity provider such as Keycloak translates SAML',
  Git: 'use a pipeline of the Git server, which `targets.Webhook` or `tasks.JavaScriptTask` can start',
  GitLab: 'use `targets.Scim`, `targets.Webhook` or a plug-in against the API of GitLab',
} as const

export interface OpenUnisonClass {
  /** Without the prefix. */
  readonly name: string
  /** In the objects of OpenUnison's charts and documentation pages; 0 if only its older manual has the name. */
  readonly uses: number
  readonly area?: keyof typeof outsideAreas
  /** What to use as long as no module has this name. */
  readonly instead?: string
  /** The gateway does the work of the class itself, so that an object which names it has the same effect as one which does not. */
  readonly isBuiltIn?: true
}

/**
 * The class names that OpenUnison documents, by the slot they are used in: those of the catalog, then parts that objects
 * name in parameters. Whether a class is served is not written here: the catalog and the loader decide.
 */
export const openUnisonClasses: Readonly<Record<string, readonly OpenUnisonClass[]>> = {
  'authentication mechanism': [
    { name: 'provisioning.auth.JITAuthMech', uses: 2 },
    {
      name: 'proxy.auth.AcknowledgeAuthMech',
      uses: 1,
      instead: 'show the terms at the registration (`filters.Register`), or at your identity provider',
    },
    { name: 'proxy.auth.AddPortalRolesToUserData', uses: 1 },
    { name: 'proxy.auth.AnonAuth', uses: 1 },
    { name: 'proxy.auth.AuthorizationAuthMech', uses: 2 },
    { name: 'proxy.auth.BasicAuth', uses: 1 },
    {
      name: 'proxy.auth.CertAuth',
      uses: 1,
      instead: 'use `auth.Passkey`, or an identity provider that checks certificates, with `auth.OpenIDConnect`',
    },
    {
      name: 'proxy.auth.DuoSecLogin',
      uses: 1,
      instead: 'use `auth.Totp` or `auth.Passkey`, or Duo as an identity provider with `auth.OpenIDConnect`',
    },
    { name: 'proxy.auth.FormLoginAuthMech', uses: 3 },
    { name: 'proxy.auth.FullMappingAuthMech', uses: 2 },
    { name: 'proxy.auth.GenerateOIDCTokens', uses: 2 },
    { name: 'proxy.auth.IncludeChain', uses: 1 },
    {
      name: 'proxy.auth.IWAAuth',
      uses: 1,
      instead: 'use an identity provider that speaks Kerberos, such as Keycloak or AD FS, with `auth.OpenIDConnect`',
    },
    { name: 'proxy.auth.JavaScriptAuth', uses: 1, instead: 'use `auth.Plugin`' },
    { name: 'proxy.auth.LoadLastUpdatedAuth', uses: 2 },
    { name: 'proxy.auth.LoginService', uses: 2 },
    {
      name: 'proxy.auth.LogUserAgentAuth',
      uses: 1,
      isBuiltIn: true,
      instead: 'it is not needed: the audit entry of a login has the user agent',
    },
    { name: 'proxy.auth.MappingAuthmech', uses: 1 },
    { name: 'proxy.auth.oauth2.OAuth2BearerLastMile', uses: 1, instead: 'use `auth.OAuth2JWT` or `auth.BearerToken`' },
    { name: 'proxy.auth.oauth2.OAuth2JWT', uses: 2 },
    { name: 'proxy.auth.OAuth2K8sServiceAccount', uses: 3 },
    { name: 'proxy.auth.otp.OTPAuth', uses: 1 },
    {
      name: 'proxy.auth.otpsms.TwilioSMS',
      uses: 1,
      instead: 'use `auth.Totp` or `auth.Passkey`: a code by text message can be intercepted',
    },
    { name: 'proxy.auth.PasswordReset', uses: 1, instead: 'use `filters.Passwords`' },
    {
      name: 'proxy.auth.persistentCookie.PersistentCookie',
      uses: 1,
      instead: 'give the session more time: `timeout` in `cookieConfig`',
    },
    { name: 'proxy.auth.SAML2Auth', uses: 2, area: 'SAML' },
    {
      name: 'proxy.auth.secret.SecretQuestionAuth',
      uses: 1,
      instead: 'answers can be guessed; use `auth.Passkey` or `auth.Totp`',
    },
    { name: 'proxy.auth.ServiceAccount2Claims', uses: 1 },
    {
      name: 'proxy.auth.UserOnlyAuthMech',
      uses: 1,
      instead: 'use `auth.FormLogin` or `auth.Passkey`: a login needs a proof',
    },
    { name: 'proxy.auth.WebAuthn', uses: 1 },
    { name: 'unison.google.u2f.U2fAuth', uses: 0, instead: 'use `auth.Passkey`' },
    {
      name: 'unison.proxy.auth.github.GithubAuthMech',
      uses: 2,
      instead:
        'use GitHub behind an identity provider that speaks OpenID Connect, such as Dex or Keycloak, with `auth.OpenIDConnect`',
    },
    { name: 'unison.proxy.auth.openidconnect.OpenIDConnectAuthMech', uses: 2 },
  ],
  authorization: [
    { name: 'az.RBACBindingAuthorization', uses: 1 },
    { name: 'customaz.JavaScriptAz', uses: 2 },
    { name: 'provisioning.az.ManagerAuthorization', uses: 1 },
    { name: 'proxy.az.AlwaysFail', uses: 1 },
    { name: 'proxy.az.UserHasSessionAz', uses: 2, instead: 'write the rule with `authorizations.JavaScript`' },
    {
      name: 'unison.proxy.auth.github.GithubTeamRule',
      uses: 3,
      instead: 'write the rule as a filter over the teams that the login delivers',
    },
  ],
  'custom task': [
    { name: 'argocd.tasks.AddtoRBAC', uses: 2 },
    { name: 'argocd.tasks.CreateGitRepository', uses: 2 },
    { name: 'mongodb.unison.CreateMongoGroups', uses: 2, instead: 'use a plug-in target (`targets.Plugin`)' },
    { name: 'provisioning.customTasks', uses: 2 },
    { name: 'provisioning.customTasks.AddGroupToStore', uses: 32 },
    {
      name: 'provisioning.customTasks.AddTimestampToUser',
      uses: 3,
      instead: 'use a JavaScript task (`tasks.JavaScriptTask`)',
    },
    { name: 'provisioning.customTasks.AsyncCallWorkflow', uses: 1 },
    { name: 'provisioning.customTasks.Attribute2Group', uses: 1, instead: 'use `tasks.Attribute2Groups`' },
    { name: 'provisioning.customTasks.Attribute2Groups', uses: 3 },
    { name: 'provisioning.customTasks.CallRemoteWorkflow', uses: 2 },
    { name: 'provisioning.customTasks.ClearGroups', uses: 1 },
    {
      name: 'provisioning.customTasks.ClearPasswordResets',
      uses: 2,
      isBuiltIn: true,
      instead: 'it is not needed: a password reset expires automatically',
    },
    { name: 'provisioning.customTasks.com.tremolosecurity.provisioning.customTasks', uses: 1 },
    { name: 'provisioning.customTasks.com.tremolosecurity.provisioning.customTasks.GenUUIDAttribute', uses: 1 },
    { name: 'provisioning.customTasks.CopyFromUserToRequest', uses: 3 },
    {
      name: 'provisioning.customTasks.CopyGroupMembers',
      uses: 2,
      instead: 'use a JavaScript task (`tasks.JavaScriptTask`)',
    },
    {
      name: 'provisioning.customTasks.CreateOTPKey',
      uses: 2,
      instead: 'users set up their second factor themselves: see `auth.Totp`',
    },
    {
      name: 'provisioning.customTasks.DeleteGroupMembers',
      uses: 5,
      instead: 'use a JavaScript task (`tasks.JavaScriptTask`)',
    },
    {
      name: 'provisioning.customTasks.DoesGroupExist',
      uses: 2,
      instead: 'use a JavaScript task (`tasks.JavaScriptTask`)',
    },
    { name: 'provisioning.customTasks.FilterGroups', uses: 2 },
    { name: 'provisioning.customTasks.github.AddTeamToRepo', uses: 1, area: 'Git' },
    { name: 'provisioning.customTasks.github.CreateDeploymentKey', uses: 3, area: 'Git' },
    { name: 'provisioning.customTasks.github.CreateGitFile', uses: 1, area: 'Git' },
    { name: 'provisioning.customTasks.github.CreateGithubRepo', uses: 2, area: 'Git' },
    { name: 'provisioning.customTasks.github.CreateSecret', uses: 1, area: 'Git' },
    { name: 'provisioning.customTasks.JavaScriptTask', uses: 25 },
    { name: 'provisioning.customTasks.JITBasicDBCreateGroups', uses: 2, instead: 'use `tasks.CreateGroup`' },
    { name: 'provisioning.customTasks.JITIgnoreGroups', uses: 2, instead: 'use `tasks.FilterGroups`' },
    { name: 'provisioning.customTasks.LoadAttributes', uses: 17 },
    { name: 'provisioning.customTasks.LoadAttributesFromTarget', uses: 2 },
    { name: 'provisioning.customTasks.LoadGroups', uses: 8 },
    { name: 'provisioning.customTasks.LoadGroupsFromTarget', uses: 9 },
    { name: 'provisioning.customTasks.MapGroups', uses: 2 },
    { name: 'provisioning.customTasks.MapJitGroups', uses: 2, instead: 'use `tasks.MapGroups`' },
    { name: 'provisioning.customTasks.PrintUserInfo', uses: 27 },
    { name: 'provisioning.customTasks.RemoveGroupFromStore', uses: 2 },
    { name: 'provisioning.customTasks.SetPassword', uses: 2 },
    { name: 'provisioning.tasks.CheckApiExists', uses: 2, instead: 'use a JavaScript task (`tasks.JavaScriptTask`)' },
    { name: 'provisioning.tasks.CheckForGit', uses: 3, area: 'Git' },
    { name: 'provisioning.tasks.CleanLabels', uses: 2, instead: 'use a JavaScript task (`tasks.JavaScriptTask`)' },
    { name: 'provisioning.tasks.ClearGroups', uses: 2 },
    { name: 'provisioning.tasks.CopyGroupMembers', uses: 4, instead: 'use a JavaScript task (`tasks.JavaScriptTask`)' },
    {
      name: 'provisioning.tasks.CreateK8sObject',
      uses: 32,
      instead: 'use `targets.Webhook`, or a JavaScript task (`tasks.JavaScriptTask`)',
    },
    {
      name: 'provisioning.tasks.DeleteK8sObject',
      uses: 16,
      instead: 'use `targets.Webhook`, or a JavaScript task (`tasks.JavaScriptTask`)',
    },
    { name: 'provisioning.tasks.DoesGroupExist', uses: 2, instead: 'use a JavaScript task (`tasks.JavaScriptTask`)' },
    { name: 'provisioning.tasks.Env2Req', uses: 2 },
    {
      name: 'provisioning.tasks.PatchK8sObject',
      uses: 1,
      instead: 'use `targets.Webhook`, or a JavaScript task (`tasks.JavaScriptTask`)',
    },
    { name: 'provisioning.tasks.PushToGit', uses: 8, area: 'Git' },
    {
      name: 'provisioning.tasks.WaitForStatus',
      uses: 1,
      instead: 'use `targets.Webhook`, or a JavaScript task (`tasks.JavaScriptTask`)',
    },
    {
      name: 'proxy.auth.secret.CreateSecretQuestionsTask',
      uses: 0,
      instead: 'answers can be guessed; use `auth.Passkey` or `auth.Totp`',
    },
    { name: 'unison.gitlab.provisioning.tasks.AddGitlabExternalIdentity', uses: 2, area: 'GitLab' },
    { name: 'unison.gitlab.provisioning.tasks.AddGroupToProject', uses: 2, area: 'GitLab' },
    { name: 'unison.gitlab.provisioning.tasks.CreateDeploymentKey', uses: 2, area: 'GitLab' },
    { name: 'unison.gitlab.provisioning.tasks.CreateGitFile', uses: 2, area: 'GitLab' },
    { name: 'unison.gitlab.provisioning.tasks.CreateProject', uses: 2, area: 'GitLab' },
    { name: 'unison.gitlab.provisioning.tasks.ForkProject', uses: 2, area: 'GitLab' },
    { name: 'unison.openshiftv3.tasks.AddGroupToRole', uses: 2 },
    { name: 'unison.openshiftv3.tasks.CreateProject', uses: 2 },
    { name: 'unison.openstack.AddRoleTask', uses: 2, instead: 'use a plug-in target (`targets.Plugin`)' },
    {
      name: 'unison.proxy.auth.github.MergeGithubGroups',
      uses: 2,
      instead: 'use `tasks.Attribute2Groups` or `tasks.MapGroups`',
    },
  ],
  'dynamic workflow': [
    { name: 'provisioning.dynamicwf.DBTargetDynamicWF', uses: 1 },
    { name: 'provisioning.dynamicwf.JavaScriptDynamicWorkflows', uses: 1 },
    { name: 'provisioning.dynamicwf.LDAPDynaicWorkflows', uses: 0 },
    {
      name: 'scalejs.ListClusterApproverGroups',
      uses: 6,
      instead: 'use `dynamicWorkflows.JavaScript` or `dynamicWorkflows.Sql`',
    },
    {
      name: 'scalejs.WorkflowListClusters',
      uses: 1,
      instead: 'use `dynamicWorkflows.JavaScript` or `dynamicWorkflows.Directory`',
    },
    { name: 'unison.openshiftv3.wf.OpenShiftWorkflows', uses: 3, instead: 'use `dynamicWorkflows.JavaScript`' },
    { name: 'unison.openstack.KeystoneDynamicWorkflow', uses: 0, instead: 'use `dynamicWorkflows.JavaScript`' },
  ],
  filter: [
    {
      name: 'activemq.ChooseAmq',
      uses: 1,
      area: 'proxy',
      instead: 'it is not needed: runs are stored in the database, and there is no message broker',
    },
    {
      name: 'prelude.filters.CompleteLogin',
      uses: 2,
      instead: 'it is not needed: `auth.LoginService` continues the login without a filter',
    },
    { name: 'prelude.filters.DNBase2Attribute', uses: 1 },
    { name: 'prelude.filters.Group2Attribute', uses: 1 },
    { name: 'prelude.filters.Groups2Attribute', uses: 1 },
    { name: 'prelude.filters.LoginTest', uses: 1 },
    {
      name: 'prelude.filters.StopProcessing',
      uses: 4,
      instead: 'it is not needed: a URL without a filter that answers ends there',
    },
    { name: 'prometheus.aggregate.JMSPull', uses: 1, instead: 'let Prometheus read `/metrics` of every replica' },
    { name: 'prometheus.filter.MetricsFilter', uses: 2 },
    { name: 'proxy.filters.AddHttpsToRedirect', uses: 1, area: 'proxy' },
    { name: 'proxy.filters.AnonAz', uses: 1 },
    { name: 'proxy.filters.AzFilter', uses: 9, instead: 'write `azRules` of the URL' },
    { name: 'proxy.filters.BasicAuth', uses: 1, area: 'proxy' },
    { name: 'proxy.filters.CallWorkflow', uses: 2 },
    {
      name: 'proxy.filters.CheckADShadowAccounts',
      uses: 1,
      instead: 'use a workflow that provisions to `targets.ActiveDirectory`, with `auth.JitProvision`',
    },
    { name: 'proxy.filters.CheckK8sTargetMetadata', uses: 1, area: 'Git' },
    { name: 'proxy.filters.CheckSession', uses: 4 },
    { name: 'proxy.filters.ClusterGroups2Attribute', uses: 1 },
    { name: 'proxy.filters.CookieFilter', uses: 1, area: 'proxy' },
    {
      name: 'proxy.filters.custom.CreateAWSRoleAttribute',
      uses: 1,
      area: 'SAML',
      instead: 'use the token service: see the guide for AWS',
    },
    { name: 'proxy.filters.ExecuteWorkflow', uses: 1 },
    { name: 'proxy.filters.HeaderFilter', uses: 1, area: 'proxy' },
    {
      name: 'proxy.filters.HideCookie',
      uses: 8,
      area: 'proxy',
      instead: 'it is not needed: the gateway forwards no request',
    },
    { name: 'proxy.filters.JavaScriptFilter', uses: 12, instead: 'use `filters.Plugin`' },
    { name: 'proxy.filters.K8sInjectImpersonation', uses: 13, area: 'proxy' },
    { name: 'proxy.filters.LastMile', uses: 1, area: 'proxy' },
    { name: 'proxy.filters.LastMileJSON', uses: 1, area: 'proxy' },
    {
      name: 'proxy.filters.LdapOnJson',
      uses: 1,
      instead:
        'use `filters.ScimGateway`, which answers searches over a target; passwords are checked by `auth.BasicAuth`',
    },
    {
      name: 'proxy.filters.MapUriRoot',
      uses: 4,
      area: 'proxy',
      instead: 'it is not needed: the gateway forwards no request',
    },
    { name: 'proxy.filters.PreAuthFilter', uses: 1, area: 'proxy' },
    { name: 'proxy.filters.RemoteBasic', uses: 1, area: 'proxy' },
    { name: 'proxy.filters.RemovePrefix', uses: 1, area: 'proxy' },
    {
      name: 'proxy.filters.RetrieveIdToken',
      uses: 1,
      instead: 'use the token endpoint of the identity provider, with the refresh token',
    },
    { name: 'proxy.filters.scim.Scim', uses: 1 },
    {
      name: 'proxy.filters.SetNoCacheHeaders',
      uses: 20,
      instead: 'it is not needed: answers that must not be cached say so',
    },
    { name: 'proxy.filters.SetupEndSessionWatch', uses: 9 },
    { name: 'proxy.filters.SetupGroupMetadataWatch', uses: 1 },
    {
      name: 'proxy.filters.SetupSyncTLSKeys',
      uses: 3,
      isBuiltIn: true,
      instead: 'it is not needed: keys are read from secrets, and read again after a change',
    },
    { name: 'proxy.filters.UserToJSON', uses: 1 },
    {
      name: 'proxy.filters.XForward',
      uses: 9,
      area: 'proxy',
      instead: 'it is not needed: the gateway forwards no request',
    },
    { name: 'scalejs.password.ws.ScalePassword', uses: 0, instead: 'use `filters.Passwords`' },
    { name: 'scalejs.register.ws.ScaleRegister', uses: 3 },
    {
      name: 'scalejs.singlerequest.ws.ScaleSingleRequest',
      uses: 0,
      instead: 'use `filters.Register`, with `submitLoggedInUser`',
    },
    { name: 'scalejs.token.ws.ScaleToken', uses: 3 },
    {
      name: 'scalejs.ws.ScaleJSOperator',
      uses: 1,
      instead: 'use the console, `/console`, and its API (`filters.WorkflowAdmin`)',
    },
    { name: 'scalejs.ws.ScaleMain', uses: 1 },
  ],
  job: [
    {
      name: 'idp.providers.oidc.model.jobs.ClearSessions',
      uses: 1,
      isBuiltIn: true,
      instead: 'it is not needed: expired sessions end and are removed automatically',
    },
    {
      name: 'jobs.ClearLogouts',
      uses: 2,
      instead: 'it is not needed: logouts are stored in the database and removed automatically',
    },
    {
      name: 'provisioning.jobs.WaitForJob',
      uses: 2,
      isBuiltIn: true,
      instead: 'it is not needed: a run that waits wakes up automatically',
    },
    {
      name: 'provisioning.scheduler.jobs.AutoFail',
      uses: 0,
      isBuiltIn: true,
      instead: 'it is not needed: the escalationPolicy of an approval defines what happens without a decision',
    },
    { name: 'provisioning.scheduler.jobs.JavaScriptJob', uses: 3 },
    { name: 'provisioning.scheduler.jobs.RemindApprovers', uses: 1 },
    {
      name: 'provisioning.scheduler.jobs.UpdateApprovalAz',
      uses: 1,
      isBuiltIn: true,
      instead: 'it is not needed: the rules check the approver when a decision is made',
    },
    {
      name: 'unison.openshiftv3.jobs.DeleteObject',
      uses: 0,
      instead: 'use a workflow with `DeleteK8sObject`, or a CronJob of the cluster',
    },
  ],
  mapper: [
    { name: 'mappers.CompositeNoReturn', uses: 1 },
    { name: 'mappers.GenerateGroups', uses: 1 },
    { name: 'mappers.JsonPathMapping', uses: 3 },
    { name: 'mapping.DefaultEmail', uses: 1 },
    { name: 'mapping.JavaScriptMapping', uses: 5 },
    { name: 'unison.freeipa.mapping.Upn2Uid', uses: 0, instead: 'use `mappers.JavaScriptMapping`' },
  ],
  notifier: [{ name: 'notifications.NoNotifications', uses: 1 }],
  target: [
    { name: 'argocd.targets.ArgoCDTarget', uses: 1 },
    {
      name: 'mongodb.unison.MongoDBTarget',
      uses: 1,
      instead: 'use a plug-in target (`targets.Plugin`), or `targets.Webhook`',
    },
    { name: 'provisioning.core.providers.ADProvider', uses: 1 },
    {
      name: 'provisioning.core.providers.AmazonSimpleDBProvider',
      uses: 0,
      instead: 'use a plug-in target (`targets.Plugin`)',
    },
    {
      name: 'provisioning.core.providers.AzureADProvider',
      uses: 1,
      instead: 'use `targets.Scim` or `targets.Webhook` against Microsoft Graph, or a plug-in target',
    },
    { name: 'provisioning.core.providers.BasicDB', uses: 1 },
    {
      name: 'provisioning.core.providers.GitHubProvider',
      uses: 2,
      instead: 'use `targets.Scim` (GitHub Enterprise Cloud has a SCIM API), or a plug-in target',
    },
    { name: 'provisioning.core.providers.LDAPProvider', uses: 1 },
    {
      name: 'provisioning.core.providers.MatterMostProvider',
      uses: 1,
      instead: 'use a plug-in target (`targets.Plugin`), or `targets.Webhook`',
    },
    {
      name: 'provisioning.core.providers.TremoloTarget',
      uses: 1,
      instead: 'use `targets.Scim` against the other gateway, or `tasks.CallRemoteWorkflow`',
    },
    { name: 'provisioning.providers.K8sCrdUserProvider', uses: 2 },
    { name: 'provisioning.targets.RbacBindingsTarget', uses: 2 },
    {
      name: 'unison.drupal.drupal8.provisioning.Drupal8Target',
      uses: 1,
      instead: 'use a plug-in target (`targets.Plugin`), or `targets.Webhook`',
    },
    { name: 'unison.freeipa.FreeIPATarget', uses: 1, instead: 'use `targets.Ldap` against the LDAP server of FreeIPA' },
    { name: 'unison.gitlab.provisioning.targets.GitlabUserProvider', uses: 1, area: 'GitLab' },
    {
      name: 'unison.okta.provisioning.OktaTarget',
      uses: 2,
      instead: 'use a plug-in target (`targets.Plugin`), or `targets.Webhook`',
    },
    { name: 'unison.openshiftv3.OpenShiftTarget', uses: 2 },
    {
      name: 'unison.openstack.KeystoneProvisioningTarget',
      uses: 0,
      instead: 'use a plug-in target (`targets.Plugin`)',
    },
  ],
  'value source': [
    { name: 'scalejs.ListClusters', uses: 2, instead: 'use `sources.JavaScript`, or values in the form' },
    {
      name: 'scalejs.register.dynamicSource.EntraIDSource',
      uses: 1,
      instead: 'use `sources.Directory` or `sources.JavaScript`',
    },
    { name: 'scalejs.register.dynamicSource.JavaScriptSource', uses: 2 },
    { name: 'scalejs.register.dynamicSource.LoadFromDatabaseTarget', uses: 0 },
    { name: 'scalejs.register.dynamicSource.LoadFromLDAP', uses: 4 },
    {
      name: 'scalejs.register.dynamicSource.LoadGroupsFromOkta',
      uses: 2,
      instead: 'use `sources.Directory` or `sources.JavaScript`',
    },
    { name: 'scalejs.register.dynamicSource.LoadTeamsFromGitHub', uses: 1, instead: 'use `sources.JavaScript`' },
  ],
  'identity provider': [
    { name: 'idp.providers.OpenIDConnectIdP', uses: 10 },
    { name: 'idp.providers.Saml2Idp', uses: 1, area: 'SAML' },
  ],
  'session store of an identity provider': [
    {
      name: 'idp.providers.oidc.db.DbOidcSessionStore',
      uses: 0,
      isBuiltIn: true,
      instead: 'it is not used: an identity provider keeps its state in the database of the gateway',
    },
    {
      name: 'idp.providers.oidc.none.NoneBackend',
      uses: 2,
      instead: 'it is not used: an identity provider keeps its state in the database of the gateway',
    },
    {
      name: 'oidc.k8s.K8sSessionStore',
      uses: 8,
      isBuiltIn: true,
      instead: 'it is not used: an identity provider keeps its state in the database of the gateway',
    },
  ],
  'source of trusts': [
    {
      name: 'oidc.k8s.K8sLoadTrusts',
      uses: 2,
      isBuiltIn: true,
      instead: 'it is not used: `Trust` objects are always read',
    },
  ],
  'source of claims': [{ name: 'oidc.k8s.AddClusterGroupsToClaims', uses: 1 }],
  'user lookup': [
    { name: 'unison.proxy.auth.openidconnect.loadUser.LoadAttributesFromWS', uses: 4 },
    { name: 'unison.proxy.auth.openidconnect.loadUser.LoadJWTFromAccessToken', uses: 7 },
  ],
  'token loader': [
    { name: 'scalejs.KubectlTokenLoader', uses: 2 },
    { name: 'scalejs.token.password.LoadToken', uses: 0 },
    { name: 'scalejs.token.sts.StsToken', uses: 1 },
    { name: 'scalejs.token.totp.TOTPToken', uses: 0 },
  ],
  'registration handler': [
    {
      name: 'scalejs.K8sProjectCheck',
      uses: 2,
      instead: 'check the name in the workflow, with a JavaScript task (`tasks.JavaScriptTask`)',
    },
    {
      name: 'scalejs.register.registrators.JavaScriptRegister',
      uses: 2,
      instead: 'use `workflowName` of `filters.Register`, with checks in the workflow',
    },
  ],
  'source of portal groups': [{ name: 'scalejs.LoadClusterGroups', uses: 1 }],
  'custom result': [
    {
      name: 'proxy.auth.persistentCookie.PersistentCookieResult',
      uses: 1,
      instead: 'give the session more time: `timeout` in `cookieConfig`',
    },
    { name: 'proxy.results.InjectIdToken', uses: 2, area: 'proxy' },
  ],
  'message listener': [
    {
      name: 'provisioning.listeners.AsyncExecuteWorkflow',
      uses: 0,
      isBuiltIn: true,
      instead: 'it is not needed: `tasks.AsyncCallWorkflow` starts a run without a queue',
    },
    {
      name: 'provisioning.listeners.AutoFailApprovalListener',
      uses: 0,
      isBuiltIn: true,
      instead: 'it is not needed: the escalationPolicy of an approval defines what happens without a decision',
    },
    {
      name: 'provisioning.listeners.JSListener',
      uses: 1,
      instead:
        'there are no message queues: call a workflow with `filters.CallWorkflow`, or run a job (`jobs.JavaScriptJob`)',
    },
    {
      name: 'provisioning.listeners.UpdateApprovalAZListener',
      uses: 1,
      isBuiltIn: true,
      instead: 'it is not needed: the rules check the approver when a decision is made',
    },
  ],
  'certificate check': [
    {
      name: 'proxy.auth.ssl.FileCRL',
      uses: 1,
      instead: 'use an identity provider that checks certificates, with `auth.OpenIDConnect`',
    },
    {
      name: 'proxy.auth.ssl.LdapCRL',
      uses: 1,
      instead: 'use an identity provider that checks certificates, with `auth.OpenIDConnect`',
    },
    {
      name: 'proxy.auth.ssl.OCSP',
      uses: 1,
      instead: 'use an identity provider that checks certificates, with `auth.OpenIDConnect`',
    },
  ],
}

/** All class names of OpenUnison begin with it. */
export const openUnisonPrefix = 'com.tremolosecurity.'

/** What to use as long as no module has the name. */
export const insteadOf = ({ instead, area }: OpenUnisonClass): string | undefined =>
  instead ?? (area === undefined ? undefined : outsideAreas[area])
