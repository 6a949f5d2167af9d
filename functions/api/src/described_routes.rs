//! Routes that can be described: a router at once, and their OpenAPI document only when it is asked for.
//!
//! To make the document of all routes takes several times the memory and the time of the rest of a start.

use crate::extract::demand_described;
use axum::{
    Router, handler,
    middleware::from_fn_with_state,
    routing::{MethodFilter, MethodRouter},
};
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path,
    openapi::{HttpMethod, OpenApi, path::Operation},
};

/// How the paths below `/api` of other protocols end. Their clients send parameters of their own, and a client of OAuth ignores those that it does not
/// know (RFC 6749 §4.1.2).
const OF_OTHERS: [&str; 6] =
    ["/ag-ui", "/ai-sdk/chat", "/ai-sdk/chat/{id}/stream", "/ai-sdk/chat/{id}/stop", "/mcp", "/mcp/callback"];

/// Adds an operation and the schemas that it refers to.
pub(crate) type Describe = fn(&mut OpenApi);

/// A handler at its path, with its description.
pub(crate) struct Route<S> {
    path: String,
    methods: MethodRouter<S>,
    describe: Describe,
}

/// The handler that `#[utoipa::path]` has described as `D`.
pub(crate) fn route<D, H, T, S>(handler: H) -> Route<S>
where
    D: Path + Tags<'static> + SchemaReferences,
    H: handler::Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    let on = |methods: MethodRouter<S>, method| methods.on(filter(&method), handler.clone());
    let (path, mut methods) = (D::path(), D::methods().into_iter().fold(MethodRouter::new(), on));
    if path.starts_with("/api/") && !OF_OTHERS.iter().any(|end| path.ends_with(end)) {
        let operation: fn() -> Operation = D::operation;
        methods = methods.route_layer(from_fn_with_state(operation, demand_described));
    }
    Route { path, methods, describe: describe::<D> }
}

/// Handlers that are described, each with its module: `routes!(chats::create_chat, chats::list_chats)`.
macro_rules! routes {
    ($($module:ident :: $handler:ident),+ $(,)?) => {
        pastey::paste! {
            [$($crate::described_routes::route::<$module::[<__path_ $handler>], _, _, _>($module::$handler)),+]
        }
    };
}
pub(crate) use routes;

/// A router that remembers how its routes are described.
pub(crate) struct Routes<S = ()> {
    router: Router<S>,
    descriptions: Vec<Describe>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No route.
    pub fn new() -> Self {
        Self { router: Router::new(), descriptions: Vec::new() }
    }

    /// With these, too. Handlers of one path may be added apart.
    pub fn routes<const N: usize>(self, routes: [Route<S>; N]) -> Self {
        routes.into_iter().fold(self, |mut all, Route { path, methods, describe }| {
            all.descriptions.push(describe);
            Self { router: all.router.route(&path, methods), ..all }
        })
    }

    /// With all routes of another.
    pub fn merge(mut self, other: Self) -> Self {
        self.descriptions.extend(other.descriptions);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// With the state of its handlers.
    pub fn with_state<S2>(self, state: S) -> Routes<S2> {
        Routes { router: self.router.with_state(state), descriptions: self.descriptions }
    }

    /// With an extension for every handler.
    pub fn extended<E: Clone + Send + Sync + 'static>(self, extension: E) -> Self {
        Self { router: self.router.layer(axum::Extension(extension)), ..self }
    }

    /// The router, and the descriptions of its routes.
    pub fn into_parts(self) -> (Router<S>, Vec<Describe>) {
        (self.router, self.descriptions)
    }
}

fn describe<D: Path + Tags<'static> + SchemaReferences>(document: &mut OpenApi) {
    let (mut operation, tags) = (D::operation(), D::tags());
    if !tags.is_empty() {
        operation.tags.get_or_insert_default().extend(tags.into_iter().map(ToOwned::to_owned));
    }
    document.paths.add_path_operation(D::path(), D::methods(), operation);
    let mut schemas = Vec::new();
    D::schemas(&mut schemas);
    document.components.get_or_insert_default().schemas.extend(schemas);
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
    }
}
