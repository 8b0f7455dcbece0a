/** com.tremolosecurity.proxy.util.ProxyConstants: the names that requests and sessions have values under. */
export const ProxyConstants = {
  AUTH_CTL: 'TREMOLO_AUTH_CTL',
  AUTH_MECH_NAME: 'AUTO_IDM_MECH_NAME',
  AUTH_MECH_PARAMS: 'AUTO_IDM_AUTH_MECH_PARAMS',
  AUTOIDM_CFG: 'AUTO_IDM_CFG',
}

/** com.tremolosecurity.proxy.ProxySys. */
export const ProxySys = {
  MSG_BODY: 'TREMOLO_PROXY_MSG_BODY',
}

/** com.tremolosecurity.proxy.auth.AzSys. */
export const AzSys = {
  AUTO_IDM_HTTP_HEADERS: 'AUTO_IDM_HTTP_HEADERS',
}

/** com.tremolosecurity.provisioning.core.providers.BasicDB. The key has no effect: a change is always a transaction. */
export const BasicDB = {
  DISABLE_TRANSACTIONS: 'tremolo.io/db/disable_transactions',
}
