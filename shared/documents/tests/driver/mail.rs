//! Attachments of messages become files, follow their message, and go with it; what people do with them stays.

use super::*;

const MAIL: &str = "/data/x.eml";
const ATTACHED: &str = "/data/x.eml.attachments";

#[tokio::test]
async fn attachments_of_a_message_are_documents_beside_it() {
    let world = World::new().await;
    put(&world.workspace, MAIL, "mail\nreport.csv|one\n../report.CSV|two\n..|three").await;
    world.settle().await;
    assert_eq!(world.names(ATTACHED).await, ["attachment-3", "report (2).CSV", "report.csv"]);
    let text = world.text("/data/x.eml.md").await;
    let list = "\n## Attachments\n\n- [report.csv](x.eml.attachments/report.csv), 3 bytes\n\
        - [report (2).CSV](x.eml.attachments/report%20%282%29.CSV), 3 bytes\n\
        - [attachment-3](x.eml.attachments/attachment-3), 5 bytes\n";
    assert!(text.ends_with(list), "{text}");
    let mail = world.workspace.stat(&path(MAIL)).await.unwrap();
    let folder = world.workspace.stat(&path(ATTACHED)).await.unwrap();
    assert_eq!(mail.conversion.unwrap().attachments, Some(folder.file_id));
    for name in ["attachment-3", "report (2).CSV", "report.csv"] {
        let file = world.workspace.stat(&path(&format!("{ATTACHED}/{name}"))).await.unwrap();
        assert_eq!((file.derived_from, file.author.as_str()), (Some(mail.file_id), "system"), "{name}");
        assert_eq!(file.conversion.unwrap().status, ConversionStatus::Done, "{name}");
    }

    // A changed message has its present attachments: what stayed the same has no new version, and what is gone is in the trash.
    put(&world.workspace, MAIL, "mail\nreport.csv|one\nlist.csv|four").await;
    world.settle().await;
    assert_eq!(world.names(ATTACHED).await, ["list.csv", "report.csv"]);
    assert_eq!(world.workspace.stat(&path(&format!("{ATTACHED}/report.csv"))).await.unwrap().v, 1);
    let trash = world.workspace.trash(100, None).await.unwrap();
    let gone: Vec<&str> = trash.files.iter().map(|it| it.info.name.as_str()).collect();
    for name in ["attachment-3", "attachment-3.md", "report (2).CSV", "report (2).CSV.md"] {
        assert!(gone.contains(&name), "{name} in {gone:?}");
    }
}

#[tokio::test]
async fn files_of_people_among_attachments_stay() {
    let world = World::new().await;
    let report = format!("{ATTACHED}/report.csv");
    put(&world.workspace, MAIL, "mail\nreport.csv|one\nlist.csv|two").await;
    world.settle().await;
    put(&world.workspace, &report, "mine").await;
    put(&world.workspace, MAIL, "mail\nreport.csv|three\nlist.csv|two").await;
    world.settle().await;
    assert_eq!(world.names(ATTACHED).await, ["list.csv", "report (2).csv", "report.csv"]);
    assert_eq!(world.text(&report).await, "mine");
    assert_eq!(world.text(&format!("{ATTACHED}/report (2).csv")).await, "three");

    // The same content is one file, whoever wrote it.
    put(&world.workspace, MAIL, "mail\nreport.csv|mine").await;
    world.settle().await;
    assert_eq!(world.names(ATTACHED).await, ["report.csv"]);
    world.workspace.rm(&path(MAIL), &person()).await.unwrap();
    world.settle().await;
    assert_eq!(
        (world.names("/data").await, world.names(ATTACHED).await),
        (vec!["x.eml.attachments".to_owned()], vec!["report.csv".to_owned()])
    );

    // So does one in the folder of a message in a message.
    put(&world.workspace, "/data/n.eml", "nested 9").await;
    world.settle().await;
    let inner = "/data/n.eml.attachments/inner.eml.attachments";
    assert_eq!(world.names(inner).await, ["inner.eml", "inner.eml.attachments"]);
    put(&world.workspace, &format!("{inner}/mine.csv"), "mine").await;
    world.workspace.rm(&path("/data/n.eml"), &person()).await.unwrap();
    world.settle().await;
    assert_eq!(world.names("/data/n.eml.attachments").await, ["inner.eml.attachments"]);
    assert_eq!(world.names(inner).await, ["mine.csv"]);

    // A file in the place of the folder stays, too, and the Markdown says so.
    put(&world.workspace, "/data/y.eml.attachments", "mine").await;
    put(&world.workspace, "/data/y.eml", "mail\nreport.csv|one").await;
    world.settle().await;
    assert_eq!(world.text("/data/y.eml.attachments").await, "mine");
    let text = world.text("/data/y.eml.md").await;
    assert!(text.ends_with("[1 left out: /data/y.eml.attachments is a file]\n"), "{text}");
}

#[tokio::test]
async fn attachments_follow_their_message_and_go_with_it() {
    let world = World::new().await;
    put(&world.workspace, MAIL, "mail\nreport.csv|one").await;
    world.settle().await;
    let conversions = world.conversions();
    let id = world.workspace.mv(&path(MAIL), &path("/data/y.eml"), &person()).await.unwrap().file_id;
    // The same message once more gets its attachments without a conversion.
    put(&world.workspace, "/data/z.eml", "mail\nreport.csv|one").await;
    world.settle().await;
    for name in ["y", "z"] {
        assert_eq!(world.names(&format!("/data/{name}.eml.attachments")).await, ["report.csv"], "{name}");
        let text = world.text(&format!("/data/{name}.eml.md")).await;
        let link = format!(
            "# Mail\n\n<!-- attachments -->\n\n## Attachments\n\n- [report.csv]({name}.eml.attachments/report.csv), 3 bytes\n"
        );
        assert!(text.ends_with(&link), "{text}");
    }
    world.workspace.rm(&path("/data/y.eml"), &person()).await.unwrap();
    world.settle().await;
    assert_eq!(world.names("/data").await, ["z.eml", "z.eml.attachments"]);
    world.workspace.restore(id, &person()).await.unwrap();
    world.settle().await;
    assert_eq!(world.names("/data").await, ["y.eml", "y.eml.attachments", "z.eml", "z.eml.attachments"]);
    assert_eq!(world.names("/data/y.eml.attachments").await, ["report.csv"]);
    assert_eq!(world.conversions(), conversions);
}

#[tokio::test]
async fn attachments_that_waited_when_their_message_went_are_converted_after_its_restore() {
    let world = World::new().await;
    put(&world.workspace, MAIL, "mail\nreport.csv|one").await;
    let message = world.queue.messages().pop().unwrap();
    assert_eq!(world.drive(vec![message]).await, 1);
    let report = path(&format!("{ATTACHED}/report.csv"));
    let status = async || world.workspace.stat(&report).await.unwrap().conversion.unwrap().status;
    assert_eq!(status().await, ConversionStatus::Queued);
    let id = world.workspace.rm(&path(MAIL), &person()).await.unwrap().file_id;
    // The attachment goes before anybody has looked at it.
    let removal = world.queue.messages().pop().unwrap();
    assert_eq!(world.drive(vec![removal]).await, 1);
    assert!(world.workspace.stat(&report).await.is_err());
    world.settle().await;
    assert_eq!(world.conversions(), 1);

    world.workspace.restore(id, &person()).await.unwrap();
    world.settle().await;
    assert_eq!(status().await, ConversionStatus::Done);
    assert!(world.text(&format!("{report}.md")).await.ends_with("\none\n"));
}

#[tokio::test]
async fn attachments_lie_beside_their_message_when_a_folder_above_moves_meanwhile() {
    let world = World::new().await;
    world.meanwhile(Meanwhile::Move("/data/old", "/data/new"));
    put(&world.workspace, "/data/old/in/x.eml", "mail\nreport.csv|one").await;
    world.settle().await;
    assert_eq!(world.names("/data").await, ["new"]);
    assert_eq!(world.names("/data/new/in").await, ["x.eml", "x.eml.attachments"]);
    assert_eq!(world.names("/data/new/in/x.eml.attachments").await, ["report.csv"]);
    let text = world.text("/data/new/in/x.eml.md").await;
    assert!(text.contains("path: \"/data/new/in/x.eml\"\n"), "{text}");
    assert!(text.ends_with("- [report.csv](x.eml.attachments/report.csv), 3 bytes\n"), "{text}");
}

#[tokio::test]
async fn a_message_leaves_none_of_its_attachments_in_the_folder_of_a_person() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        put(&world.workspace, &format!("/data/{name}.eml.attachments/mine.csv"), "mine").await;
        put(&world.workspace, &format!("/data/{name}.eml"), &format!("mail\nreport.csv|{name}")).await;
    }
    world.settle().await;
    assert_eq!(world.names("/data/a.eml.attachments").await, ["mine.csv", "report.csv"]);
    let conversions = world.conversions();
    let mv = async |from: &str, to: &str| {
        let (from, to) = (path(&format!("/data/{from}.eml")), path(&format!("/data/{to}.eml")));
        world.workspace.mv(&from, &to, &person()).await.unwrap();
    };
    mv("a", "a2").await;
    // Two moves, and a move and a removal, of which the converter sees the end alone.
    mv("b", "b2").await;
    mv("b2", "b3").await;
    mv("c", "c2").await;
    world.workspace.rm(&path("/data/c2.eml"), &person()).await.unwrap();
    world.settle().await;
    for name in ["a", "b", "c"] {
        assert_eq!(world.names(&format!("/data/{name}.eml.attachments")).await, ["mine.csv"], "{name}");
    }
    for name in ["a2", "b3"] {
        assert_eq!(world.names(&format!("/data/{name}.eml.attachments")).await, ["report.csv"], "{name}");
    }
    let at = ["a.eml.attachments", "a2.eml", "a2.eml.attachments", "b.eml.attachments", "b3.eml", "b3.eml.attachments"];
    assert_eq!(world.names("/data").await, [at.as_slice(), &["c.eml.attachments"]].concat());
    // The attachments are the same contents, in files of their own.
    assert_eq!(world.conversions(), conversions);
}

#[tokio::test]
async fn a_message_that_changes_or_goes_meanwhile_leaves_no_attachments() {
    let world = World::new().await;
    world.meanwhile(Meanwhile::Write(MAIL, "no message"));
    put(&world.workspace, MAIL, "mail\nreport.csv|one").await;
    world.settle().await;
    assert_eq!(world.names("/data").await, ["x.eml"]);
    assert!(world.text("/data/x.eml.md").await.ends_with("\nno message\n"));

    world.meanwhile(Meanwhile::Remove("/data/y.eml"));
    put(&world.workspace, "/data/y.eml", "mail\nreport.csv|two").await;
    world.settle().await;
    assert_eq!(world.names("/data").await, ["x.eml"]);
    assert!(world.workspace.stat(&path("/data/y.eml.md")).await.is_err());
}

#[tokio::test]
async fn attachments_of_a_conversion_that_died_go_with_the_next_version() {
    let world = World::new().await;
    put(&world.workspace, MAIL, "mail\nreport.csv|one").await;
    let mail = world.workspace.stat(&path(MAIL)).await.unwrap();
    let dead = Writer { derived_from: Some(mail.file_id), attaches: true, ..Writer::new(Principal::System) };
    let report = path(&format!("{ATTACHED}/report.csv"));
    world.workspace.write(&report, "one", Expect::Absent, &dead).await.unwrap();
    put(&world.workspace, MAIL, "no message").await;
    world.settle().await;
    assert_eq!(world.names("/data").await, ["x.eml"]);

    // So it is with a version that is not converted at all.
    put(&world.workspace, MAIL, "mail\nreport.csv|two").await;
    world.settle().await;
    assert_eq!(world.names(ATTACHED).await, ["report.csv"]);
    put(&world.workspace, MAIL, "").await;
    world.settle().await;
    assert_eq!(world.names("/data").await, ["x.eml"]);
    assert!(world.workspace.stat(&path("/data/x.eml.md")).await.is_err());
    let conversion = world.workspace.stat(&path(MAIL)).await.unwrap().conversion.unwrap();
    assert_eq!((conversion.status, conversion.attachments), (ConversionStatus::Skipped, None));
}

#[tokio::test]
async fn a_folder_with_attachments_that_a_person_moved_is_theirs() {
    let world = World::new().await;
    put(&world.workspace, MAIL, "mail\nreport.csv|one").await;
    world.settle().await;
    world.workspace.mv(&path(ATTACHED), &path("/projects/contract"), &person()).await.unwrap();
    put(&world.workspace, MAIL, "mail\nlist.csv|two").await;
    world.settle().await;
    assert_eq!(world.names("/projects/contract").await, ["report.csv"]);
    assert_eq!(world.names(ATTACHED).await, ["list.csv"]);

    // Attachments in a folder that somebody else made go without it.
    put(&world.workspace, "/data/y.eml.attachments/mine.csv", "mine").await;
    put(&world.workspace, "/data/y.eml", "mail\nreport.csv|one").await;
    world.settle().await;
    assert_eq!(world.names("/data/y.eml.attachments").await, ["mine.csv", "report.csv"]);
    for mail in [MAIL, "/data/y.eml"] {
        world.workspace.rm(&path(mail), &person()).await.unwrap();
    }
    world.settle().await;
    assert_eq!(world.names("/projects/contract").await, ["report.csv"]);
    assert_eq!(world.names("/data").await, ["y.eml.attachments"]);
    assert_eq!(world.names("/data/y.eml.attachments").await, ["mine.csv"]);
}

#[tokio::test]
async fn attachments_follow_a_message_whose_markdown_has_no_place() {
    let world = World::new().await;
    put(&world.workspace, "/data/x.eml.md", "mine").await;
    put(&world.workspace, MAIL, "mail\nreport.csv|one").await;
    world.settle().await;
    let conversion = world.workspace.stat(&path(MAIL)).await.unwrap().conversion.unwrap();
    assert_eq!((conversion.status, conversion.reason.as_deref()), (ConversionStatus::Failed, Some("name_taken")));
    world.workspace.mv(&path(MAIL), &path("/data/y.eml"), &person()).await.unwrap();
    world.settle().await;
    assert_eq!(world.names("/data").await, ["x.eml.md", "y.eml", "y.eml.attachments"]);
    assert_eq!(world.names("/data/y.eml.attachments").await, ["report.csv"]);
    let conversion = world.workspace.stat(&path("/data/y.eml")).await.unwrap().conversion.unwrap();
    assert_eq!(conversion.status, ConversionStatus::Done);
}

#[tokio::test]
async fn a_message_in_messages_gives_the_fewer_attachments_the_deeper_it_lies() {
    let world = World::new().await;
    let lines: String = (1..=21).map(|number| format!("\n{number}.csv|{number}")).collect();
    put(&world.workspace, "/data/a.attachments/x.eml", &format!("mail{lines}")).await;
    world.settle().await;
    assert_eq!(world.names("/data/a.attachments/x.eml.attachments").await.len(), 20);
    let text = world.text("/data/a.attachments/x.eml.md").await;
    assert!(text.ends_with("[1 left out: a message as deep in others gives 20 at most]\n"), "{text}");
}

#[tokio::test]
async fn files_that_are_made_may_start_flows_where_their_writer_may() {
    let world = World::new().await;
    for (number, may_run) in [false, true].into_iter().enumerate() {
        let at = format!("/data/{number}.eml");
        let writer = Writer { may_run, ..person() };
        let mail = format!("mail\nreport.csv|{number}");
        let id = world.workspace.write(&path(&at), mail, Expect::Absent, &writer).await.unwrap().file_id;
        let task = world.workspace.unconverted(id).await.unwrap().unwrap().0;
        assert_eq!(task.may_not_run, !may_run);
        let message = world.queue.messages().pop().unwrap();
        assert_eq!(world.drive(vec![message]).await, 1);
        // The attachment, which is a document, waits with the same right.
        let report = world.workspace.stat(&path(&format!("{at}.attachments/report.csv"))).await.unwrap();
        let task = world.workspace.unconverted(report.file_id).await.unwrap().unwrap().0;
        assert_eq!(task.may_not_run, !may_run);
    }
}

#[tokio::test]
async fn messages_in_messages_become_files_four_deep() {
    let world = World::new().await;
    put(&world.workspace, MAIL, "nested 9").await;
    world.settle().await;
    assert_eq!(world.conversions(), 5);
    let deepest = format!("/data/x.eml{}", ".attachments/inner.eml".repeat(4));
    let text = world.text(&format!("{deepest}.md")).await;
    assert!(
        text.ends_with(
            "nested 5\n\n<!-- attachments -->\n\n## Attachments\n\n[1 left out: it lies too deep in other messages]\n"
        ),
        "{text}"
    );
    assert_eq!(world.names(&format!("{deepest}.attachments")).await, [""; 0]);
}

#[tokio::test]
async fn a_folder_that_is_closed_closes_the_attachments_in_it() {
    let world = World::new().await;
    let closed = r#"forbid (principal is Agent, action, resource in Path::"/data/closed");"#;
    put(&world.workspace, "/system/policies/a.cedar", closed).await;
    for folder in ["/data/closed", "/data/open"] {
        put(&world.workspace, &format!("{folder}/x.eml"), &format!("mail\nreport.csv|{folder}")).await;
    }
    world.settle().await;
    let person = UserId(Uuid::from_u128(7));
    let subject = Subject::Agent { persona: "assistant".into(), person, has_home: true };
    let agent = world.all.open(world.id, Access::subject(subject)).await.unwrap();
    for file in ["x.eml", "x.eml.md", "x.eml.attachments/report.csv", "x.eml.attachments/report.csv.md"] {
        let is_read = async |folder: &str| agent.read(&path(&format!("{folder}/{file}")), None).await.is_ok();
        assert_eq!((is_read("/data/closed").await, is_read("/data/open").await), (false, true), "{file}");
    }
    assert!(agent.ls(&path("/data/closed/x.eml.attachments"), 10, None).await.is_err());
}
